import { NO_MEMORY, type Allocation, type ArbitratorMemory } from '../../quota/index.js';
import type { ConsumerObject } from '../../kube/quota/consumer-object.js';
import type { AllocationObject, AllocationStatus } from '../../kube/quota/allocation-object.js';
import { writeAmounts } from '../../kube/amounts.js';
import { conditionsAt, type ConditionState } from '../../kube/condition.js';

/** Input of `allocationReport`. */
export interface AllocationReportInput {
  readonly allocation: Allocation;
  readonly weight: number;
  /** `hard` and `reserved` as the Consumer has them; absent without a Consumer. */
  readonly written?: ConsumerObject['written'] | undefined;
  /** The arbitrator's memory after this period. */
  readonly memory: ArbitratorMemory;
  readonly now: number;
}

/** Computes the status that an Allocation should have. */
export function allocationReport(
  { allocation, weight, written, memory, now }: AllocationReportInput,
  before: AllocationStatus,
): AllocationStatus {
  const { name, hard, reserved, deserved, used, pending, dominantShare, overused, reclaimAt } = allocation;
  // The status lists only resources that the consumer uses, requests or has a fair share of: a cluster has dozens.
  const concerned = new Set(
    [deserved, used, pending].flatMap((amounts) =>
      [...amounts].filter(([, amount]) => amount > 0).map(([resource]) => resource),
    ),
  );
  const wantedSince = memory.wantedSince.get(name);
  const reclaimed = [...(memory.evictedAt.get(name) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    hard: written?.hard ?? writeAmounts(hard ?? new Map<string, number>()),
    reserved: written?.reserved ?? writeAmounts(reserved),
    weight,
    deserved: writeAmounts(deserved, concerned),
    allocated: writeAmounts(used),
    pending: writeAmounts(pending),
    dominantShare: dominantShare.toFixed(3),
    overused,
    ...(wantedSince === undefined || reclaimAt === null
      ? {}
      : { wantedSince: timeText(wantedSince), reclaimAt: timeText(reclaimAt) }),
    ...(reclaimed.length === 0
      ? {}
      : { reclaimedFor: Object.fromEntries(reclaimed.map(([to, at]) => [to, timeText(at)])) }),
    conditions: conditionsAt(now, findings(allocation), before.conditions),
  };
}

function findings({ overused, notGuaranteed, reclaimAt }: Allocation): readonly ConditionState[] {
  return [
    overused.length === 0
      ? { type: 'Overused', status: 'False', reason: 'WithinDeserved', message: 'usage is within the fair share' }
      : {
          type: 'Overused',
          status: 'True',
          reason: 'MoreThanDeserved',
          message: `usage exceeds the fair share of ${overused.join(', ')}`,
        },
    reclaimAt === null
      ? {
          type: 'Reclaiming',
          status: 'False',
          reason: 'NobodyWaits',
          message: 'no pod waits for a resource that this consumer overuses',
        }
      : {
          type: 'Reclaiming',
          status: 'True',
          reason: 'OthersWait',
          message: `other consumers wait for resources that this consumer overuses; its pods may be evicted from ${timeText(reclaimAt)} on`,
        },
    notGuaranteed.length === 0
      ? {
          type: 'ReservedGuaranteed',
          status: 'True',
          reason: 'ClusterSuffices',
          message: 'the cluster has room for all reservations',
        }
      : {
          type: 'ReservedGuaranteed',
          status: 'False',
          reason: 'MoreReservedThanThere',
          message: `the reservations of all consumers exceed the cluster in ${notGuaranteed.join(', ')}`,
        },
  ];
}

/** Whether a status change should be written before others: a changed eviction deadline or condition. */
export function isUrgent(before: AllocationStatus, after: AllocationStatus): boolean {
  const states = ({ conditions = [] }: AllocationStatus): string =>
    conditions.map(({ type, status }) => `${type} ${status}`).join();
  return (
    before.reclaimAt !== after.reclaimAt ||
    Object.keys(before.reclaimedFor ?? {}).join() !== Object.keys(after.reclaimedFor ?? {}).join() ||
    states(before) !== states(after)
  );
}

/** Restores the memory that the last leader wrote into the Allocations. */
export function memoryOf(allocations: readonly AllocationObject[]): ArbitratorMemory {
  const wantedSince = new Map(
    allocations.flatMap(({ name, status }) => {
      const at = Date.parse(status.wantedSince ?? '');
      return Number.isFinite(at) ? [[name, at] as const] : [];
    }),
  );
  const evictedAt = new Map(
    allocations.map(
      ({ name, status }) =>
        [
          name,
          new Map(
            Object.entries(status.reclaimedFor ?? {})
              .map(([to, at]) => [to, Date.parse(at)] as const)
              .filter(([, at]) => Number.isFinite(at)),
          ),
        ] as const,
    ),
  );
  return { ...NO_MEMORY, wantedSince, evictedAt };
}

/** Keeps milliseconds: a time rounded down would end the grace period early. */
function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
