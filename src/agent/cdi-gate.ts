import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { CdiAnswer } from './doctor-claims.js';

/** Longest time that the registration waits for the runtime's answer. */
const ANSWER_MS = 5_000;
/** Interval in which a runtime that does not accept CDI devices is asked again. */
const PERIOD_MS = 30_000;

export interface CdiGateOptions {
  /** Asks the container runtime. */
  readonly examine: () => Promise<CdiAnswer>;
  /** Registers the driver with the kubelet. */
  readonly register: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Registers the DRA driver when the container runtime accepts CDI devices. Without them every pod with a claim would
 * fail when it starts; with no registration, pods wait until the runtime was configured. A runtime that gives no
 * answer, or does not tell, counts as one that accepts them.
 */
export class CdiGate {
  readonly #options: CdiGateOptions;
  #problem: string | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: CdiGateOptions) {
    this.#options = options;
  }

  /** Why the driver is not registered; null if the runtime does not prevent it. */
  get problem(): string | null {
    return this.#problem;
  }

  async open(): Promise<void> {
    const { examine, register, clock, log } = this.#options;
    const answer = await Promise.race([
      examine(),
      new Promise<null>((resolve) => clock.after(ANSWER_MS, () => resolve(null))),
    ]);
    const { diagnosis = null, rejects = false } = answer ?? {};
    if (diagnosis?.state === 'failed' && diagnosis.what !== this.#problem)
      log.error({ advice: diagnosis.advice }, diagnosis.what);
    this.#problem = rejects ? (diagnosis?.what ?? null) : null;
    if (this.#problem === null) return register();
    this.#cancel = clock.after(PERIOD_MS, () => {
      this.open().catch((error: unknown) => log.error({ err: error }, 'registering with the kubelet failed'));
    });
  }

  close(): void {
    this.#cancel();
  }
}
