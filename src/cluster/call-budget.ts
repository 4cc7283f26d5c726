import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pace, Turns } from './placement/pace.js';

export interface CallLimits {
  /** CPU time, for all nodes together. */
  readonly cpuMs: number;
  /** Time without waits for other pods. On a loaded machine it ends a call before the CPU time does. */
  readonly ms: number;
}

/** The call of a usual pod takes some milliseconds. */
const CALL_LIMITS: CallLimits = { cpuMs: 250, ms: 700 };

/** After this time the computation of a call lets the event loop serve others. */
const TURN_MS = 3;

/** Maximum wait of a call for calls that have used less CPU time. */
const YIELD_MS = 20;

/** Milliseconds of CPU time that the process has used. */
export type CpuMeter = () => number;

const processCpuMs: CpuMeter = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The computations of all calls: of several, the one that has used the least CPU time continues first. */
export class CallTurns {
  readonly #running = new Set<CallBudget>();
  readonly #limits: CallLimits;
  readonly #cpuMs: CpuMeter;

  constructor(limits: CallLimits = CALL_LIMITS, cpuMs: CpuMeter = processCpuMs) {
    this.#limits = limits;
    this.#cpuMs = cpuMs;
  }

  /** The budget of a new call. */
  budget(): CallBudget {
    return new CallBudget(this.#limits, this.#running, this.#cpuMs);
  }
}

/** The computing time of one call: one budget for all its parts and all nodes. */
export class CallBudget implements Pace {
  readonly #limits: CallLimits;
  readonly #running: Set<CallBudget>;
  readonly #cpuMs: CpuMeter;
  #usedCpuMs = 0;
  #usedMs = 0;
  #turnStartedMs = 0;
  /** Whether something was left out because the time was used up. */
  #wasSpent = false;

  constructor(limits: CallLimits, running: Set<CallBudget>, cpuMs: CpuMeter) {
    this.#limits = limits;
    this.#running = running;
    this.#cpuMs = cpuMs;
  }

  get wasSpent(): boolean {
    return this.#wasSpent;
  }

  isTurnOver(): boolean {
    return performance.now() - this.#turnStartedMs >= TURN_MS;
  }

  isSpent(): boolean {
    const { cpuMs, ms } = this.#limits;
    const inTurnMs = performance.now() - this.#turnStartedMs;
    const isSpent = this.#usedCpuMs + Math.min(inTurnMs, TURN_MS) >= cpuMs || this.#usedMs + inTurnMs >= ms;
    if (isSpent) this.#wasSpent = true;
    return isSpent;
  }

  /** Runs a computation to its end; between its turns, other calls run. */
  async run<T>(turns: Turns<T>): Promise<T> {
    const startedMs = performance.now();
    const usedMs = this.#usedMs;
    this.#running.add(this);
    try {
      for (;;) {
        const { done, value } = this.#turn(turns);
        this.#usedMs = usedMs + performance.now() - startedMs;
        if (done === true) return value;
        await this.#others();
        this.#usedMs = usedMs + performance.now() - startedMs;
      }
    } finally {
      this.#running.delete(this);
    }
  }

  #turn<T>(turns: Turns<T>): IteratorResult<void, T> {
    this.#turnStartedMs = performance.now();
    const cpuMs = this.#cpuMs();
    const result = turns.next();
    this.#usedCpuMs += this.#cpuMs() - cpuMs;
    return result;
  }

  /** Lets the event loop turn, and calls that have used less CPU time run first. */
  async #others(): Promise<void> {
    const startedMs = performance.now();
    do await nextTurn();
    while (performance.now() - startedMs < YIELD_MS && this.#hasCheaper());
  }

  #hasCheaper(): boolean {
    for (const other of this.#running) if (other.#usedCpuMs < this.#usedCpuMs) return true;
    return false;
  }
}
