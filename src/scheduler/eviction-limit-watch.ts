import { readDisruptionBudget, type DisruptionBudget } from '../kube/disruption-budget.js';
import { ServedCollection, type ServedCollectionOptions } from '../kube/served-collection.js';
import type { EvictionLimitSource } from '../cluster/eviction-limits.js';
import { readGroupMinimum, type GroupMinimum } from '../cluster/pod-groups.js';

/**
 * Watches what limits evictions: disruption budgets, and the PodGroups of Kubernetes and of coscheduling where the API
 * server serves them. Nothing waits for it: without it the scheduler's own counts are used.
 */
export class EvictionLimitWatch implements EvictionLimitSource {
  readonly #budgets: ServedCollection<DisruptionBudget>;
  readonly #groups: readonly ServedCollection<GroupMinimum>[];

  constructor(options: Pick<ServedCollectionOptions<unknown>, 'client' | 'clock' | 'log' | 'timing'>) {
    this.#budgets = new ServedCollection({
      ...options,
      group: 'policy',
      resource: 'poddisruptionbudgets',
      keep: (object, version) => readDisruptionBudget(object, version === 'v1beta1' ? 'v1beta1' : 'v1'),
    });
    this.#groups = ['scheduling.k8s.io', 'scheduling.x-k8s.io'].map(
      (group) => new ServedCollection({ ...options, group, resource: 'podgroups', keep: readGroupMinimum }),
    );
  }

  start(): void {
    for (const part of [this.#budgets, ...this.#groups]) part.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#budgets, ...this.#groups].map((part) => part.stop()));
  }

  disruptionBudgets(): readonly DisruptionBudget[] | null {
    return this.#budgets.values();
  }

  groupMinimums(): readonly GroupMinimum[] {
    return this.#groups.flatMap((group) => group.values() ?? []);
  }
}
