/** Divides a long computation into turns, and ends it when it has taken too long. */
export interface Pace {
  /** Whether the computation must let others run before it continues. */
  isTurnOver(): boolean;
  /** Whether its time is used up: what it has not computed by now, it leaves out. */
  isSpent(): boolean;
}

/** No limits: for computations that nothing waits beside. */
export const UNPACED: Pace = { isTurnOver: () => false, isSpent: () => false };

/**
 * A computation in turns: it yields between them, and the cluster may change while it does. All work of one turn is one
 * step for everybody else.
 */
export type Turns<T> = Generator<void, T, void>;

/** The result of a computation whose turns follow each other at once. */
export function atOnce<T>(turns: Turns<T>): T {
  for (;;) {
    const { done, value } = turns.next();
    if (done === true) return value;
  }
}
