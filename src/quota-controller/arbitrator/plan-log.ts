import { isDeepStrictEqual } from 'node:util';
import type { ArbitrationPlan } from '../../quota/arbitrator/index.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { writeAmounts } from '../../kube/amounts.js';
import type { ClusterPod } from './cluster-pod.js';

/** Logs the plans of an arbitrator in plan mode, each plan that differs from the one before. */
export class PlanLog {
  readonly #log: StructuredLog;
  #last: object = { overused: [], evictions: [] };

  constructor(log: StructuredLog) {
    this.#log = log;
  }

  write({ allocations, evictions }: ArbitrationPlan, pods: ReadonlyMap<string, ClusterPod>): void {
    const overused = allocations
      .filter((allocation) => allocation.overused.length > 0)
      .map(({ name, overused: resources, deserved, used, reclaimAt }) => ({
        consumer: name,
        deserved: writeAmounts(deserved, new Set(resources)),
        allocated: writeAmounts(used, new Set(resources)),
        reclaimAt: reclaimAt === null ? null : new Date(reclaimAt).toISOString(),
      }));
    const plan = {
      overused,
      evictions: evictions.map(({ pod, resource, beneficiaries }) => ({
        pod: titleOf(pods.get(pod), pod),
        resource,
        for: beneficiaries,
      })),
    };
    if (isDeepStrictEqual(plan, this.#last)) return;
    this.#last = plan;
    this.#log.info(
      plan,
      evictions.length === 0
        ? 'plan of the arbitrator: no pod would be evicted'
        : 'plan of the arbitrator: with --arbitrator=on these pods would be evicted',
    );
  }
}

function titleOf(pod: ClusterPod | undefined, uid: string): string {
  return pod === undefined ? uid : `${pod.namespace}/${pod.name}`;
}
