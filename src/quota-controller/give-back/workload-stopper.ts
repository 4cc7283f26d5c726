import type { StructuredLog } from '../../host/structured-log.js';
import type { KubeApi } from '../../kube/client.js';
import type { KubeFailureCode } from '../../kube/failure.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { WaitingWorkload } from '../../kube/quota/waiting-workload.js';
import { refOfKey, type Eviction, type QuotaEngine } from '../../quota/internal.js';
import type { ArbitratorMetrics } from '../arbitrator/arbitrator-metrics.js';
import type { ClusterPod } from '../arbitrator/cluster-pod.js';
import type { Evictor } from '../arbitrator/evictor.js';
import type { WorkloadObject } from '../workloads/workload-object.js';
import { numbers, type WaitingWorkloads } from './waiting-workloads.js';
import { replicasOf, scale, stopOf, suspend } from './workload-stop.js';

export interface WorkloadStopperOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly waiting: WaitingWorkloads;
  /** Takes the quota of a Workload of Kueue back; false if that is not possible now. */
  readonly takeBack: (uid: string) => Promise<boolean>;
  readonly events: EventRecorder;
  readonly log: StructuredLog;
  readonly metrics: Pick<ArbitratorMetrics, 'stopped'>;
}

/** A recorded workload that waits, with its group. */
export interface WaitingInGroup extends WaitingWorkload {
  readonly key: string;
  readonly group: string;
}

/** Failures after which a workload has surely not been changed. */
const REFUSED: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>([
  'forbidden',
  'invalid',
  'not-found',
  'conflict',
]);

/** Stops whole workloads of borrowers, and starts them again. */
export class WorkloadStopper {
  readonly #options: WorkloadStopperOptions;

  constructor(options: WorkloadStopperOptions) {
    this.#options = options;
  }

  /** Stops a workload. It is recorded first, so that no failure loses the number of its replicas. */
  async stop(workload: WorkloadObject, pods: readonly ClusterPod[], evictor: Evictor, now: number): Promise<boolean> {
    const { api, waiting, log, engine } = this.#options;
    const stop = stopOf(workload.kind);
    if (stop === 'evict') {
      for (const pod of pods) if ((await evictor.evict(pod)) !== 'evicted') return false;
      return pods.length > 0;
    }
    if (stop === 'take-back') return this.#options.takeBack(workload.uid);
    const replicas = stop === 'scale' ? await replicasOf(api, workload) : null;
    if (stop === 'scale' && (replicas === null || replicas === 0)) return false;
    const charge = engine.charges(workload.group).find(({ workload: key }) => key === workload.key);
    const entry: WaitingWorkload = {
      amounts: numbers(charge?.amounts ?? new Map<string, bigint>()),
      ...(pods.length === 0 ? {} : { priority: Math.max(...pods.map(({ priority }) => priority)) }),
      since: now,
      asked: now,
      room: null,
      stopped: replicas === null ? {} : { replicas },
    };
    if (!(await waiting.write(workload.group, new Map([[workload.key, entry]])))) return false;
    const answer = stop === 'scale' ? await scale(api, workload, 0) : await suspend(api, workload, true);
    if (answer.ok) return true;
    log.warn({ workload: workload.key, code: answer.code, reason: answer.message }, 'stopping a workload failed');
    // After any other failure it may have stopped.
    if (REFUSED.has(answer.code)) await waiting.write(workload.group, new Map([[workload.key, null]]));
    return false;
  }

  /**
   * Starts a stopped workload; false if the API server refuses that now. The quota webhook decides as for any other
   * client, and removes the record.
   */
  async resume(workload: WorkloadObject, { key, group, stopped }: WaitingInGroup): Promise<boolean> {
    const { api, waiting, log, metrics, events } = this.#options;
    const replicas = stopped?.replicas ?? null;
    // Another client has scaled it meanwhile: it is no longer the arbitrator's to start.
    const isOurs = replicas === null || (await replicasOf(api, workload)) === 0;
    const answer = !isOurs
      ? null
      : replicas === null
        ? await suspend(api, workload, false)
        : await scale(api, workload, replicas);
    if (answer?.ok === false) {
      log.info(
        { workload: key, group, code: answer.code, reason: answer.message },
        'resuming a stopped workload was refused; it stays stopped',
      );
      return false;
    }
    await waiting.write(group, new Map([[key, null]]));
    if (answer === null) return true;
    metrics.stopped('resumed');
    log.info({ workload: key, group }, 'workload started again');
    events.record(subjectOf(workload), {
      type: 'Normal',
      reason: 'Resumed',
      message: `started again: group ${group} has room for it`,
    });
    return true;
  }

  /** Tells operators and the workload's owner for which waiting workload it was stopped. */
  report(workload: WorkloadObject, { resource }: Eviction, { key: starts, group: beneficiary }: WaitingInGroup): void {
    const { log, metrics, events } = this.#options;
    const { key, group, namespace } = workload;
    metrics.stopped('stopped');
    log.info({ workload: key, group, resource, for: beneficiary, starts }, 'workload stopped');
    // Readers of this namespace may not know the workloads of others.
    const shown = refOfKey(starts).namespace === namespace ? starts : 'a workload of another namespace';
    events.record(subjectOf(workload), {
      type: 'Warning',
      reason: group === beneficiary ? 'Preempted' : 'Reclaimed',
      message:
        group === beneficiary
          ? `stopped: ${shown} of higher priority needs ${resource} of group ${group}; it is started again when there is room`
          : `stopped: group ${group} borrows ${resource} that group ${beneficiary} needs for ${shown}; it is started again when there is room`,
    });
  }
}

function subjectOf({ kind, namespace, name, uid }: WorkloadObject): EventSubject {
  const apiVersion = kind.path.startsWith('/apis/') ? kind.path.split('/').slice(2, 4).join('/') : 'v1';
  return { apiVersion, kind: kind.evaluator.kind, namespace, name, uid };
}
