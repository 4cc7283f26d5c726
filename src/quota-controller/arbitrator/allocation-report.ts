import { NO_MEMORY, type Allocation, type ArbitratorMemory } from '../../quota/arbitrator/index.js';
import type { AllocationObject, AllocationStatus } from './allocation-object.js';
import { writeAmounts } from '../../kube/amounts.js';
import { conditionsAt, type Finding } from '../../kube/condition.js';

/** What the status of an Allocation is made of. */
export interface AllocationNews {
  readonly allocation: Allocation;
  readonly weight: number;
  /** After this period. */
  readonly memory: ArbitratorMemory;
  readonly now: number;
}

/** What the status of an Allocation should be. */
export function allocationReport(
  { allocation, weight, memory, now }: AllocationNews,
  before: AllocationStatus,
): AllocationStatus {
  const { name, hard, reserved, deserved, used, pending, dominantShare, overused, reclaimAt } = allocation;
  // What it neither has nor wants nor is given is not shown: a cluster has dozens of resources.
  const concerned = new Set(
    [deserved, used, pending].flatMap((amounts) =>
      [...amounts].filter(([, amount]) => amount > 0).map(([resource]) => resource),
    ),
  );
  const wantedSince = memory.noticedAt.get(name);
  const reclaimed = [...(memory.evictedAt.get(name) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    hard: writeAmounts(hard ?? new Map<string, number>()),
    reserved: writeAmounts(reserved),
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

function findings({ overused, notGuaranteed, reclaimAt }: Allocation): readonly Finding[] {
  return [
    overused.length === 0
      ? { type: 'Overused', status: 'False', reason: 'WithinDeserved', message: 'it has no more than it deserves' }
      : {
          type: 'Overused',
          status: 'True',
          reason: 'MoreThanDeserved',
          message: `it has more than it deserves of ${overused.join(', ')}`,
        },
    reclaimAt === null
      ? {
          type: 'Reclaiming',
          status: 'False',
          reason: 'NobodyWaits',
          message: 'nobody waits for what it has too much of',
        }
      : {
          type: 'Reclaiming',
          status: 'True',
          reason: 'OthersWait',
          message: `others wait for what it has too much of: from ${timeText(reclaimAt)} on pods may be evicted`,
        },
    notGuaranteed.length === 0
      ? { type: 'ReservedGuaranteed', status: 'True', reason: 'ClusterSuffices', message: 'what is reserved is there' }
      : {
          type: 'ReservedGuaranteed',
          status: 'False',
          reason: 'MoreReservedThanThere',
          message: `more is reserved for all than there is of ${notGuaranteed.join(', ')}`,
        },
  ];
}

/** What people should learn of first: who is to lose pods, and who is overused. */
export function isUrgent(before: AllocationStatus, after: AllocationStatus): boolean {
  const states = ({ conditions = [] }: AllocationStatus): string =>
    conditions.map(({ type, status }) => `${type} ${status}`).join();
  return (
    before.reclaimAt !== after.reclaimAt ||
    Object.keys(before.reclaimedFor ?? {}).join() !== Object.keys(after.reclaimedFor ?? {}).join() ||
    states(before) !== states(after)
  );
}

/** What the last leader knew, as far as it wrote it down. */
export function memoryOf(allocations: readonly AllocationObject[]): ArbitratorMemory {
  const noticedAt = new Map(
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
  return { ...NO_MEMORY, noticedAt, evictedAt };
}

/** With milliseconds: whose grace would otherwise end early. */
function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
