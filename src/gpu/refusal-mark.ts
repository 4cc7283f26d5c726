/**
 * Opens every refusal on its way to the kubelet, which copies it into the status of the pod or container: by it a failed
 * pod is told to be our doing, also after a restart, and its reader learns who refused.
 */
const MARK = 'gpu-manager: ';

export function markRefusal(reason: string): string {
  return `${MARK}${reason}`;
}

/** The reason in a kubelet's words about our refusal; null where it speaks of something else. */
export function readRefusal(text: string): string | null {
  const at = text.indexOf(MARK);
  return at < 0 ? null : text.slice(at + MARK.length).replace(/, which is unexpected\.?$/, '');
}
