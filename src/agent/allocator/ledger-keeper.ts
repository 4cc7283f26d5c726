import { encodeCheckpoint } from '../../gpu/ledger/checkpoint.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import type { Log } from '../../host/log.js';
import type { CheckpointStore } from './ports.js';

/**
 * The ledger of this node, its one queue of changes, and its checkpoint. Every change of the state runs inside `run`.
 */
export class LedgerKeeper {
  state: LedgerState;
  readonly #checkpoint: CheckpointStore;
  readonly #log: Log;
  #queue: Promise<unknown> = Promise.resolve();
  #unsaved = false;

  constructor(state: LedgerState, { checkpoint, log }: { readonly checkpoint: CheckpointStore; readonly log: Log }) {
    this.state = state;
    this.#checkpoint = checkpoint;
    this.#log = log;
  }

  /** Runs a step after all earlier steps have ended. */
  run<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(step);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** True while the checkpoint is older than the ledger, because it could not be written. */
  get unsaved(): boolean {
    return this.#unsaved;
  }

  /**
   * Writes the checkpoint. A failure is only logged: the checkpoint saves time at the next start, and a full disk must
   * not stop pod admission.
   */
  async save(): Promise<void> {
    try {
      await this.#checkpoint.save(encodeCheckpoint(this.state));
      this.#unsaved = false;
    } catch (error) {
      this.#unsaved = true;
      this.#log.error(
        { err: error },
        'the checkpoint could not be written; the next start rebuilds allocations from the kubelet',
      );
    }
  }
}
