/** Divides a long computation into turns, and ends it when it has taken too long. */
export interface Pace {
  /** Whether the computation must let others run before it continues. */
  isTurnOver(): boolean;
  /** Whether its time is used up: the computation then leaves out the remaining work. */
  isSpent(): boolean;
}

/** No limits: for computations that block no other work. */
export const UNPACED: Pace = { isTurnOver: () => false, isSpent: () => false };

/**
 * A computation in turns: it yields between them, and the cluster may change while it does. The work of one turn is
 * atomic for all other code.
 */
export type Turns<T> = Generator<void, T, void>;

/** Runs all turns of a computation without a pause, and returns its result. */
export function atOnce<T>(turns: Turns<T>): T {
  for (;;) {
    const { done, value } = turns.next();
    if (done === true) return value;
  }
}
