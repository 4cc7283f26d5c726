import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeApi } from '../kube/client.js';
import { Leader } from '../kube/leader.js';
import { BINDING_LASTS_MS } from '../kube/pod-writes.js';

/** The Lease that decides which replica answers. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** A replica that has not renewed the Lease for this time loses it. */
const LEASE_MS = 3_000;
const RENEW_MS = 500;

/**
 * A binding is sent only within this time after a renewal, so that the API server has carried it out or abandoned it
 * (`BINDING_LASTS_MS`) when the Lease expires.
 */
const MAY_WRITE_MS = 1_500;

/**
 * A leader that the scheduler has not called for this time hands over to a replica that the scheduler calls. All
 * bindings of the leader have ended by then.
 */
const UNASKED_MS = 2_000;

/**
 * Decides by a Lease which of several replicas answers the scheduler. A replica that gets the Lease first reads the
 * bindings of the previous replica. The Lease follows the leading scheduler: a replica that the scheduler calls
 * requests the Lease, and the holder hands over when the scheduler no longer calls it.
 */
export class Election {
  readonly #leader: Leader;
  readonly #clock: Clock;
  readonly #isWriting: () => boolean;
  #isReady = false;
  /** Counts changes of the holder: a read that began before the Lease was lost does not count after it is won again. */
  #term = 0;
  #lostAt = -Infinity;
  #askedAt = -Infinity;
  #wantedAt = -Infinity;

  constructor(options: {
    readonly api: KubeApi;
    readonly lease: LeaseName;
    readonly identity: string;
    readonly clock: Clock;
    readonly log: Log;
    /** Reads the bindings of the previous replica; this replica answers afterwards. */
    readonly begin: () => Promise<void>;
    /** Drops the decisions of this replica. */
    readonly end: () => void;
    readonly isWriting: () => boolean;
  }) {
    const { clock, lease, begin, end, isWriting } = options;
    this.#clock = clock;
    this.#isWriting = isWriting;
    this.#leader = new Leader({
      ...options,
      ...lease,
      leaseMs: LEASE_MS,
      retryMs: RENEW_MS,
      mayHandOver: () => clock.now() - this.#askedAt > UNASKED_MS && !isWriting(),
      won: async () => {
        // The Lease is renewed meanwhile.
        const term = ++this.#term;
        // Bindings that this replica sent before it lost the Lease may still be carried out.
        clock.after(Math.max(0, this.#lostAt + BINDING_LASTS_MS - clock.now()), () => {
          if (term !== this.#term) return;
          void begin().then(() => {
            if (term === this.#term) this.#isReady = true;
          });
        });
      },
      lost: async () => {
        this.#isReady = false;
        this.#term += 1;
        this.#lostAt = clock.now();
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

  /** Records that the scheduler called this replica. */
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

  /** Hands over at once, unless a binding is being written: then the Lease expires. */
  async stop(): Promise<void> {
    await this.#leader.stop({ releases: !this.#isWriting() });
  }
}
