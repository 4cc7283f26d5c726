import type { Answer } from './answer.js';

/** Fraction of the time that renderings of one document may take. */
const SHARE = 0.04;
/** Rendering time that a document has after a pause, and the limit of its debt. */
const MOST_MS = 20;
/** A caller gets a new rendering at the latest when the last one is this old, however long it took. */
export const RENEWED_AFTER_MS = MOST_MS / SHARE;

/** Shares one answer among all callers that ask while it is in preparation. */
export function joined(prepare: () => Promise<Answer>): () => Promise<Answer> {
  let running: Promise<Answer> | null = null;
  return () =>
    (running ??= prepare().finally(() => {
      running = null;
    }));
}

/**
 * Shares one document among all callers. Renderings take less than a twenty-fifth of the time: a caller gets a new
 * rendering if this allows one, otherwise the last one, so the cost does not depend on the number of callers.
 *
 * @param render - returns the answer. If it fails, all waiting callers are refused, and the next caller renders
 * again.
 * @param now - a monotonic time in ms.
 */
export function sharedAnswer(
  render: () => Answer | Promise<Answer>,
  now: () => number = () => performance.now(),
): () => Promise<Answer> {
  let [leftMs, countedAtMs] = [MOST_MS, now()];
  let last: Answer | null = null;
  const rendered = joined(async () => {
    const startedAtMs = now();
    try {
      const answer = await render();
      // One buffer serves all callers, also those who read it slowly.
      last = { ...answer, body: Buffer.from(answer.body as string) };
      return last;
    } finally {
      leftMs = Math.max(-MOST_MS, leftMs - (now() - startedAtMs));
    }
  });
  return async () => {
    const nowMs = now();
    leftMs = Math.min(MOST_MS, leftMs + (nowMs - countedAtMs) * SHARE);
    countedAtMs = nowMs;
    return last !== null && leftMs <= 0 ? last : rendered();
  };
}
