import type { Test } from 'tap';

/** Asserts that a script or workflow has these steps, in this order. */
export function inOrder(t: Test, text: string, steps: readonly string[]): void {
  const at = steps.map((step) => text.indexOf(step));
  t.ok(
    at.every((each) => each > 0),
    `${steps.join(', ')}: ${at.join(', ')}`,
  );
  t.same(
    [...at].sort((a, b) => a - b),
    at,
    'in this order',
  );
}
