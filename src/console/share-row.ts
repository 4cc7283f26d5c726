import { conditionOf } from '../kube/condition.js';
import { time } from '../kube/json.js';
import type { AllocationObject } from '../kube/quota/allocation-object.js';
import type { ConsumerObject } from '../kube/quota/consumer-object.js';
import { consumerRow } from '../kube/quota/consumer-row.js';
import type { ShareAmounts, ShareRow } from './rows.js';

/** The Consumer of a namespace or an area, and the arbitrator's Allocation for it. */
export interface ShareFacts {
  readonly consumer: ConsumerObject | null;
  readonly allocation: AllocationObject | null;
}

/** The row of a consumer; null if there is neither a Consumer nor an Allocation. */
export function shareRow(name: string, { consumer, allocation }: ShareFacts): ShareRow | null {
  if (consumer === null && allocation === null) return null;
  const status = allocation?.status ?? {};
  const { parent, hard, reserved, deserved, allocated, pending } = consumerRow(name, consumer?.spec, status);
  const columns = { hard, reserved, deserved, allocated, pending };
  const resources = new Set(Object.values(columns).flatMap((amounts) => Object.keys(amounts)));
  const amounts = [...resources].sort().map((resource): ShareAmounts => {
    const given = Object.entries(columns).flatMap(([column, of]) => {
      const amount = of[resource];
      return amount === undefined ? [] : [[column, amount]];
    });
    return {
      resource,
      ...(Object.fromEntries(given) as Partial<Omit<ShareAmounts, 'resource' | 'isOverused'>>),
      isOverused: status.overused?.includes(resource) === true,
    };
  });
  const part = Number(status.dominantShare ?? NaN);
  const reclaimAtMs = time(status.reclaimAt);
  return {
    name,
    parent,
    weight: status.weight ?? consumer?.spec.weight ?? 1,
    isSystem: consumer?.spec.isSystem === true,
    amounts,
    ...(Number.isFinite(part) ? { part } : {}),
    ...(reclaimAtMs === null ? {} : { reclaimAtMs }),
    reclaimedFor: Object.entries(status.reclaimedFor ?? {}).flatMap(([to, at]) => {
      const atMs = time(at);
      return atMs === null ? [] : [{ name: to, atMs }];
    }),
    notes: notesOf({ consumer, allocation }),
  };
}

function notesOf({ consumer, allocation }: ShareFacts): readonly string[] {
  const accepted = conditionOf(consumer?.status.conditions, 'Accepted');
  const guaranteed = conditionOf(allocation?.status.conditions, 'ReservedGuaranteed');
  return [
    ...(consumer?.problems ?? []).map((problem) => `not accepted: ${problem}`),
    ...(accepted?.status === 'False' ? [`not accepted: ${accepted.message}`] : []),
    ...(guaranteed?.status === 'False' ? [guaranteed.message] : []),
  ];
}
