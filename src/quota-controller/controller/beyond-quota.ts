import {
  type Resources,
  readPodSet,
  heldOf,
  RequestShapeTable,
  type GroupStatus,
  type TypeFamily,
  type Types,
} from '../../quota/internal.js';
import { cashTarget, type Key } from '../../manifests/key.js';

/** A pod that is charged to a group. */
export interface GroupPod {
  readonly uid: string;
  readonly group: string;
  readonly types: Types;
  /** When the pod was scheduled, milliseconds; null before. */
  readonly startedAt: number | null;
  readonly needs: () => { readonly requests: Resources; readonly limits: Resources } | null;
}

/**
 * Finds the pods beyond the quota of their groups: in a group whose usage exceeds `hard`, because it borrows or because
 * its limit was lowered, the youngest pods that make up the excess. Replicas without a pod count as the youngest.
 * Budgets are ignored.
 */
export function podsBeyondQuota(
  pods: Iterable<GroupPod>,
  statusOf: (group: string) => Pick<GroupStatus, 'hard' | 'used' | 'selfUsed'> | null,
  families: readonly TypeFamily[],
): ReadonlySet<string> {
  const byGroup = new Map<string, GroupPod[]>();
  for (const pod of pods) {
    const known = byGroup.get(pod.group);
    if (known === undefined) byGroup.set(pod.group, [pod]);
    else known.push(pod);
  }
  const shapes = new RequestShapeTable(families);
  const beyond = new Set<string>();
  for (const [group, members] of byGroup) {
    const status = statusOf(group);
    const excess = status === null ? new Map<Key, bigint>() : excessOf(status);
    if (status === null || excess.size === 0) continue;
    const held = new Map(members.map((pod) => [pod, amountsOf(pod, [...excess.keys()], shapes)]));
    for (const [key, amount] of excess) {
      const ofPods = [...held.values()].reduce((sum, amounts) => sum + (amounts.get(key) ?? 0n), 0n);
      const withoutPods = (status.selfUsed.get(key) ?? 0n) - ofPods;
      excess.set(key, amount - (withoutPods > 0n ? withoutPods : 0n));
    }
    for (const pod of members.sort(youngestFirst)) {
      const amounts = held.get(pod) ?? new Map<Key, bigint>();
      if (![...amounts].some(([key, amount]) => amount > 0n && (excess.get(key) ?? 0n) > 0n)) continue;
      beyond.add(pod.uid);
      for (const [key, amount] of amounts) excess.set(key, (excess.get(key) ?? 0n) - amount);
    }
  }
  return beyond;
}

function excessOf({ hard, used }: Pick<GroupStatus, 'hard' | 'used'>): Map<Key, bigint> {
  return new Map(
    [...hard].flatMap(([key, limit]) => {
      const excess = (used.get(key) ?? 0n) - limit;
      return cashTarget(key) === null && excess > 0n ? [[key, excess] as const] : [];
    }),
  );
}

function amountsOf({ types, needs }: GroupPod, keys: readonly Key[], shapes: RequestShapeTable): Map<Key, bigint> {
  const needed = needs();
  const read = needed === null ? null : readPodSet(shapes, { count: 1, ...needed, unspecified: [] }, types);
  if (read?.ok !== true) return new Map();
  return new Map(keys.map((key) => [key, BigInt(heldOf(read.podSet, key))]));
}

/** Pods without a node are the youngest; the order is total. */
function youngestFirst(a: GroupPod, b: GroupPod): number {
  const [one, other] = [a.startedAt ?? Infinity, b.startedAt ?? Infinity];
  if (one !== other) return one > other ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
