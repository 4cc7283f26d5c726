import { isUserOf } from '../../gpu/claims/claim-units.js';
import type { Log } from '../../host/log.js';
import type { ClaimAllocator } from '../allocator/index.js';
import type { ClaimPods } from './ports.js';

/**
 * Keeps the containers of prepared claims up to date. The kubelet prepares a claim once: it does not call again for a
 * pod that joins a prepared claim later, nor for one that ends before the last one.
 */
export class ClaimConsumers {
  readonly #claims: ClaimAllocator;
  readonly #pods: ClaimPods;
  readonly #log: Log;
  #cancels: readonly (() => void)[] = [];

  constructor(claims: ClaimAllocator, pods: ClaimPods, log: Log) {
    this.#claims = claims;
    this.#pods = pods;
    this.#log = log;
  }

  start(): void {
    this.#cancels = [
      this.#pods.onClaimUsers((podUid) => this.#update(podUid)),
      this.#claims.onChanged((slices) => this.#addMissing(slices)),
    ];
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel();
  }

  /** A pod may have appeared after the claim was read and before it was prepared. */
  #addMissing(slices: ReadonlySet<string>): void {
    const units = [...this.#claims.state.units.values()].filter(({ slice }) => slices.has(slice));
    for (const podUid of this.#pods.podsWithClaims()) {
      const users = this.#pods.claimUsers(podUid) ?? [];
      const isMissing = units.some(
        (unit) =>
          !unit.consumers.some((known) => known.podUid === podUid) && users.some((user) => isUserOf(user, unit)),
      );
      if (isMissing) this.#update(podUid);
    }
  }

  #update(podUid: string): void {
    this.#claims
      .setConsumers(podUid, this.#pods.claimUsers(podUid) ?? [])
      .catch((error: unknown) => this.#log.error({ err: error, pod: podUid }, 'the users of a claim were not updated'));
  }
}
