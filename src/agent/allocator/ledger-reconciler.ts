import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import type { Allocator } from './allocator.js';

export interface LedgerReconcilerOptions {
  readonly allocator: Pick<Allocator, 'reconcile' | 'restoreSlices' | 'settle'>;
  readonly periodMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reconciles the ledger with the kubelet at start, in every period, and on each call of `reconcile`. */
export class LedgerReconciler implements Part {
  readonly name = 'reconciler';
  readonly #options: LedgerReconcilerOptions;
  #cancel: () => void = () => undefined;

  constructor(options: LedgerReconcilerOptions) {
    this.#options = options;
  }

  /** Never rejects: the next period retries. */
  reconcile(): Promise<void> {
    const { allocator, log } = this.#options;
    return allocator
      .reconcile()
      .catch((error: unknown) =>
        log.error(
          { err: error },
          'ledger reconciliation with the kubelet failed; the agent retries in the next period',
        ),
      );
  }

  async start(): Promise<void> {
    const { allocator, clock, periodMs } = this.#options;
    // The ledger is corrected before directories are created for its allocations.
    await this.reconcile();
    await allocator.restoreSlices();
    this.#cancel = clock.every(periodMs, () => void this.reconcile());
  }

  async stop(): Promise<void> {
    this.#cancel();
    await this.#options.allocator.settle();
  }
}
