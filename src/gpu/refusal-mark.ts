/**
 * The prefix of every refusal that the kubelet copies into the status of the pod or container: it identifies the failed
 * pod as refused by us, also after a restart, and tells its reader who refused.
 */
const MARK = 'gpu-manager: ';

export function markRefusal(reason: string): string {
  return `${MARK}${reason}`;
}

/** The reason of our refusal in a message of the kubelet; null in any other message. */
export function readRefusal(text: string): string | null {
  const at = text.indexOf(MARK);
  return at < 0 ? null : text.slice(at + MARK.length).replace(/, which is unexpected\.?$/, '');
}
