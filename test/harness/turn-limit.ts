import type { Test } from 'tap';

/** The goal for one turn of a program's event loop, in milliseconds of `LoopMeter`'s reference machine. */
const GOAL_MS = 50;
/** A turn and the reference work are measured at different moments, and other work slows down each in its own way. */
const MARGIN = 2;
/** A garbage collection or a busy machine lengthens the turns of one try, and seldom those of five. */
const TRIES = 5;

export interface TurnOptions {
  /** Where the goal is another one. */
  readonly goalMs?: number;
  /** More to print beside the longest turn. */
  readonly details?: () => string;
}

/**
 * Tests that no turn takes long while the program does `what`; `measure` does it anew at each call, and resolves to the
 * longest turn.
 */
export async function holdsTurns(
  t: Test,
  what: string,
  measure: () => Promise<number>,
  { goalMs = GOAL_MS, details = () => '' }: TurnOptions = {},
): Promise<void> {
  let turnMs = Infinity;
  for (let time = 0; time < TRIES && turnMs >= goalMs; time++) turnMs = Math.min(turnMs, await measure());
  t.comment(`${what}: longest turn ${turnMs.toFixed(1)} ms of CPU time ${details()}`);
  t.ok(turnMs < MARGIN * goalMs, `${what}: a turn took ${turnMs.toFixed(1)} ms; the goal is ${goalMs}`);
}
