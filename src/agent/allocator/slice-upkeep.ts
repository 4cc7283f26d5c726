import type { Allocation } from '../../gpu/ledger/allocation.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import type { Log } from '../../host/log.js';
import type { SliceStore } from '../slices/ports.js';
import { limitsOf } from './slice-limits.js';

/**
 * Creates and removes the directories of allocations as the ledger requires. A failure, such as a full disk, is logged
 * and retried at the next reconciliation: the containers run, and none may lose its allocation.
 */
export class SliceUpkeep {
  readonly #slices: SliceStore;
  readonly #log: Log;
  /** Allocations whose directory, limits or socket are still missing. */
  readonly #missing = new Set<string>();

  constructor(slices: SliceStore, log: Log) {
    this.#slices = slices;
    this.#log = log;
  }

  /** Registers an allocation whose container runs and was not started by this agent. */
  expect(id: string): void {
    this.#missing.add(id);
  }

  /** Creates the missing directories, limits and sockets of all allocations: their containers may be running. */
  async openAll({ node, allocations }: LedgerState): Promise<void> {
    for (const allocation of allocations.values()) await this.#open(node, allocation);
  }

  /** Creates missing directories and removes directories without an allocation. */
  async reconcile(state: LedgerState): Promise<void> {
    const { node, allocations, units } = state;
    const ofClaims = new Set([...units.values()].flatMap(({ id, slice }) => [id, slice]));
    for (const id of this.#missing) {
      const allocation = allocations.get(id);
      if (allocation === undefined) this.#missing.delete(id);
      else await this.#open(node, allocation);
    }
    for (const id of await this.#slices.list()) {
      if (allocations.has(id) || ofClaims.has(id)) continue;
      if (await this.remove(id)) this.#log.info({ allocation: id }, 'removed the directory of a freed allocation');
    }
  }

  /**
   * Removes the directory of a freed allocation; returns false if it remains, in which case the next reconciliation
   * removes it.
   */
  async remove(id: string): Promise<boolean> {
    try {
      await this.#slices.remove(id);
      return true;
    } catch (error) {
      this.#log.error(
        { err: error, allocation: id },
        'the directory of a freed allocation could not be removed; retrying',
      );
      return false;
    }
  }

  async #open(node: LedgerState['node'], allocation: Allocation): Promise<void> {
    const { id } = allocation;
    try {
      await this.#slices.prepare(id, false);
      await this.#slices.restore(limitsOf(node, allocation));
      this.#missing.delete(id);
    } catch (error) {
      this.#missing.add(id);
      this.#log.error({ err: error, allocation: id }, 'the slice of a running container could not be opened; retrying');
    }
  }
}
