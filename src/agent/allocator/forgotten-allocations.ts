import type { Allocation } from '../../gpu/ledger/allocation.js';
import type { Log } from '../../host/log.js';
import { runningOf } from './pod-life.js';
import type { PodEvidence, PodKnowledge } from './ports.js';

interface ForgottenOptions {
  readonly pods: PodKnowledge;
  readonly evidence: PodEvidence;
  readonly log: Log;
}

/**
 * Finds allocations whose containers run although the kubelet counts their devices as free, because it lost its
 * checkpoint. They stay allocated until the containers end.
 */
export class ForgottenAllocations {
  readonly #options: ForgottenOptions;
  /** Ids of forgotten allocations that are logged already. */
  readonly #logged = new Set<string>();

  constructor(options: ForgottenOptions) {
    this.#options = options;
  }

  /** The forgotten ones of these allocations; logs each once. */
  async among(allocations: readonly Allocation[]): Promise<readonly Allocation[]> {
    const started = allocations.filter(({ phase }) => phase === 'started');
    if (started.length === 0) return started;
    const forgotten = await runningOf(started, this.#options.pods, this.#options.evidence);
    for (const { id, owners } of forgotten) {
      if (this.#logged.has(id)) continue;
      this.#logged.add(id);
      this.#options.log.error(
        { allocation: id, owners },
        'the kubelet counts devices of a running container as free: it has lost its checkpoint; the agent keeps them allocated',
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
  return `the kubelet offers devices that running containers use (${names}): it has lost its checkpoint; wait until these containers have ended`;
}
