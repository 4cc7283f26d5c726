import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { CdiAnswer } from './cdi-support.js';

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
  #isClosed = false;

  constructor(options: CdiGateOptions) {
    this.#options = options;
  }

  /** Why the driver is not registered; null if the runtime does not prevent it. */
  get problem(): string | null {
    return this.#problem;
  }

  async open(): Promise<void> {
    const { register, clock, log } = this.#options;
    const { support = null, rejects = false } = (await this.#answer()) ?? {};
    if (this.#isClosed) return;
    if (support?.state === 'failed' && support.what !== this.#problem)
      log.error({ advice: support.advice }, support.what);
    this.#problem = rejects ? (support?.what ?? null) : null;
    if (this.#problem === null) await register();
    else this.#cancel = clock.after(PERIOD_MS, () => this.#openAgain());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #openAgain(): void {
    this.open().catch((error: unknown) => {
      const { clock, log } = this.#options;
      log.error({ err: error }, 'registering with the kubelet failed; retrying');
      if (!this.#isClosed) this.#cancel = clock.after(PERIOD_MS, () => this.#openAgain());
    });
  }

  /** The runtime's answer; null if it takes too long. */
  async #answer(): Promise<CdiAnswer | null> {
    const { examine, clock } = this.#options;
    let cancel = (): void => undefined;
    const late = new Promise<null>((resolve) => {
      cancel = clock.after(ANSWER_MS, () => resolve(null));
    });
    try {
      return await Promise.race([examine(), late]);
    } finally {
      cancel();
    }
  }
}
