import { setImmediate as nextTurn } from 'node:timers/promises';

/** A turn that takes longer than this is left by work that can wait. */
const TURN_MS = 10;

/**
 * The present turn of the event loop. A chain of promises stays in one turn however long it takes, and timers, probes
 * and requests wait for its end.
 */
export class Turn {
  #startedMs: number | null = null;

  /** Whether the turn has taken long. It begins with the first call in it. */
  isOver(): boolean {
    const now = performance.now();
    if (this.#startedMs === null) {
      this.#startedMs = now;
      setImmediate(() => (this.#startedMs = null)).unref();
    }
    return now - this.#startedMs >= TURN_MS;
  }

  /** Waits for the next turn if this one has taken long. */
  async pass(): Promise<void> {
    if (this.isOver()) await nextTurn();
  }
}

/** Takes steps to their end, and leaves the event loop to others between them. */
export async function inTurns<T>(steps: Iterator<unknown, T>): Promise<T> {
  const turn = new Turn();
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    if (turn.isOver()) await turn.pass();
  }
}
