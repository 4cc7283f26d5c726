/**
 * The prefix of every refusal. The kubelet copies the text into the status of the pod or container, so the prefix
 * identifies a pod that the agent refused, even after a restart, and names the component to the reader.
 */
const MARK = 'gpu-manager: ';

export function markRefusal(reason: string): string {
  return `${MARK}${reason}`;
}

/** The reason in a kubelet message that contains our refusal; null in any other message. */
export function readRefusal(text: string): string | null {
  const at = text.indexOf(MARK);
  return at < 0 ? null : text.slice(at + MARK.length).replace(/, which is unexpected\.?$/, '');
}
