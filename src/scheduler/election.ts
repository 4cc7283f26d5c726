import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeApi } from '../kube/client.js';
import { Leader } from '../kube/leader.js';

/** The Lease that decides which replica answers. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** A replica that does not renew the Lease for so long has lost it. */
const LEASE_MS = 3_000;
const RENEW_MS = 500;

/**
 * A binding is sent within this time of a renewal: what the API server carries out of it (`BINDING_LASTS_MS`) is over
 * when the Lease has expired.
 */
const MAY_WRITE_MS = 1_500;

/** A replica that was not asked for so long hands over to one that is asked. All its bindings are settled by then. */
const UNASKED_MS = 2_000;

/**
 * Decides by a Lease which of several replicas answers the scheduler. A replica that wins the Lease first reads what
 * the one before has bound. The Lease follows the leading scheduler: a replica that is asked and does not hold it asks
 * for it, and the holder hands over when nobody asks it any more.
 */
export class Election {
  readonly #leader: Leader;
  readonly #clock: Clock;
  #isReady = false;
  #askedAt = -Infinity;
  #wantedAt = -Infinity;

  constructor(options: {
    readonly api: KubeApi;
    readonly lease: LeaseName;
    readonly identity: string;
    readonly clock: Clock;
    readonly log: Log;
    /** Reads what the replica before has bound; this replica answers afterwards. */
    readonly begin: () => Promise<void>;
    /** Drops what this replica has decided. */
    readonly end: () => void;
    readonly isWriting: () => boolean;
  }) {
    const { clock, lease, begin, end, isWriting } = options;
    this.#clock = clock;
    this.#leader = new Leader({
      ...options,
      ...lease,
      leaseMs: LEASE_MS,
      retryMs: RENEW_MS,
      mayHandOver: () => clock.now() - this.#askedAt > UNASKED_MS && !isWriting(),
      won: async () => {
        // The Lease is renewed meanwhile.
        void begin().then(() => (this.#isReady = this.#leader.leading));
      },
      lost: async () => {
        this.#isReady = false;
        end();
      },
    });
  }

  /** Why this replica does not answer; null if it does. */
  notReady(): string | null {
    if (!this.#leader.leading) return 'another replica holds the Lease';
    if (!this.#isReady) return 'this replica has just got the Lease and reads the bindings of the one before';
    return this.#leader.sinceRenewalMs < MAY_WRITE_MS ? null : 'the Lease could not be renewed in time';
  }

  /** The scheduler asks this replica. */
  asked(): void {
    const now = this.#clock.now();
    this.#askedAt = now;
    if (this.#leader.leading || now - this.#wantedAt < RENEW_MS) return;
    this.#wantedAt = now;
    void this.#leader.want();
  }

  start(): void {
    this.#leader.start();
  }

  async stop(): Promise<void> {
    await this.#leader.stop();
  }
}
