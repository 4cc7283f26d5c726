import { isDeepStrictEqual } from 'node:util';
import type { ArbitrationPlan } from '../../quota/index.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { writeAmounts } from '../../kube/amounts.js';
import { clusterSubject, type EventRecorder } from '../../kube/events.js';
import type { ClusterPod } from './cluster-pod.js';

/**
 * Reports the plans of an arbitrator in plan mode, each plan that differs from the one before: a line of the log, and
 * an event on the namespace of each pod that would be evicted.
 */
export class PlanReport {
  readonly #log: StructuredLog;
  readonly #events: EventRecorder;
  #last: object = { overused: [], evictions: [] };

  constructor(log: StructuredLog, events: EventRecorder) {
    this.#log = log;
    this.#events = events;
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
    for (const { pod, resource, beneficiaries } of evictions) {
      const planned = pods.get(pod);
      if (planned === undefined) continue;
      const { namespace, name } = planned;
      const message = `with --arbitrator=on, pod ${name} would be evicted: namespace ${namespace} uses more ${resource} than its fair share, and pods of ${beneficiaries.join(', ')} wait for it`;
      this.#events.record(clusterSubject('Namespace', namespace), {
        type: 'Normal',
        reason: 'ReclaimPlanned',
        message,
      });
    }
  }
}

function titleOf(pod: ClusterPod | undefined, uid: string): string {
  return pod === undefined ? uid : `${pod.namespace}/${pod.name}`;
}
