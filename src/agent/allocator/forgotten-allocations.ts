import type { Allocation } from '../../gpu/ledger/allocation.js';
import { observeOffered, withoutIdsOf, type Released } from '../../gpu/ledger/release.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import type { Log } from '../../host/log.js';
import { runningOf } from './pod-life.js';
import type { HolderKnowledge, PodEvidence, PodKnowledge } from './ports.js';

/** Evidence from an offer of the kubelet. */
export interface Observed extends Released {
  /** The offered ids that no container holds. */
  readonly available: readonly string[];
  /** Allocations whose containers run although their ids are offered. */
  readonly forgotten: readonly Allocation[];
}

interface ForgottenOptions {
  readonly pods: PodKnowledge;
  readonly evidence: PodEvidence;
  readonly holders: Pick<HolderKnowledge, 'known'>;
  readonly log: Log;
}

/**
 * Finds devices that the kubelet offers although containers hold them, and keeps them allocated until the containers
 * end. A kubelet forgets devices in two ways: it lost its checkpoint, or pod-resources was listed while their Allocate
 * was under way and another pod ended (UpdateAllocatedDevices of its device manager, 1.34 to 1.37; 1.20 does not).
 */
export class ForgottenAllocations {
  readonly #options: ForgottenOptions;
  /** Ids of forgotten allocations that are logged already. */
  readonly #logged = new Set<string>();

  constructor(options: ForgottenOptions) {
    this.#options = options;
  }

  /**
   * Applies an offer of the kubelet to the ledger, without the ids that containers hold; `mustInclude` ids stay. Must
   * not be called during Allocate, because listing pod-resources then makes the kubelet forget.
   */
  async observe(state: LedgerState, available: readonly string[], mustInclude: readonly string[]): Promise<Observed> {
    const first = observeOffered(state, available, mustInclude);
    if (first.state === state) return { ...first, available, forgotten: [] };
    const unnamed = await this.#withoutNamed(available, mustInclude);
    const second = observeOffered(state, unnamed, mustInclude);
    const forgotten = await this.among(second.freed);
    if (forgotten.length === 0) return { ...second, available: unnamed, forgotten };
    const left = withoutIdsOf(forgotten, unnamed, mustInclude);
    return { ...observeOffered(state, left, mustInclude), available: left, forgotten };
  }

  /** The offered ids without those that pod-resources names as held. */
  async #withoutNamed(available: readonly string[], mustInclude: readonly string[]): Promise<readonly string[]> {
    const named = new Set<string>();
    for (const { isListed, coreIds, memoryIds } of await this.#options.holders.known())
      if (isListed) for (const id of [...coreIds, ...memoryIds]) named.add(id);
    for (const id of mustInclude) named.delete(id);
    const kept = available.filter((id) => !named.has(id));
    const devices = available.length - kept.length;
    if (devices > 0)
      this.#options.log.warn(
        { devices },
        'the kubelet offers devices that it names as held; the agent does not use them',
      );
    return kept;
  }

  /** The forgotten ones of these allocations: their containers run. Logs each once. */
  async among(allocations: readonly Allocation[]): Promise<readonly Allocation[]> {
    const started = allocations.filter(({ phase }) => phase === 'started');
    if (started.length === 0) return started;
    const forgotten = await runningOf(started, this.#options.pods, this.#options.evidence);
    for (const { id, owners } of forgotten) {
      if (this.#logged.has(id)) continue;
      this.#logged.add(id);
      this.#options.log.error(
        { allocation: id, owners },
        'the kubelet counts devices of a running container as free; the agent keeps them allocated',
      );
    }
    return forgotten;
  }

  freed(allocationId: string): void {
    this.#logged.delete(allocationId);
  }
}

/** The refusal of a request for devices of forgotten allocations. */
export function describeForgotten(allocations: readonly Allocation[]): string {
  const containers = allocations.flatMap(({ owners }) => owners.map((owner) => `${owner.pod}/${owner.container}`));
  const names = containers.slice(0, 3).join(', ') + (containers.length > 3 ? ', ...' : '');
  return `the kubelet offers devices that containers hold (${names}): it has forgotten them; wait until these containers have ended`;
}
