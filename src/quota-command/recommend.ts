import { formatAmount } from '../manifests/quantity.js';
import { recommendedShape, type Charge, type GroupStatus, type RecommendedShape } from '../quota/index.js';
import type { Key } from '../manifests/key.js';
import { table } from './table.js';

/** What to ask for in a group instead of one more workload like another. */
export interface Recommendation {
  readonly group: string;
  /** One of the workloads with this request. */
  readonly like: string;
  readonly pods: number;
  readonly asked: ReadonlyMap<Key, number>;
  /** Null if nothing of the kind fits. */
  readonly shape: RecommendedShape | null;
}

/** Recommends for each distinct request of the workloads of each group what of it still fits. */
export function recommend(statuses: readonly GroupStatus[], charges: readonly Charge[]): readonly Recommendation[] {
  return statuses.flatMap(({ name, room, budgets }) => {
    const spent = new Set(budgets.flatMap(({ key, left }) => (left <= 0n ? [key.slice('cash/'.length)] : [])));
    const free = new Map([...room].map(([key, amount]) => [key, spent.has(key) ? 0 : Number(amount)]));
    const known = new Map<string, Charge>();
    for (const charge of charges) {
      const signature = `${charge.pods} ${[...charge.amounts].join(' ')}`;
      if (charge.group === name && charge.amounts.size > 0 && !known.has(signature)) known.set(signature, charge);
    }
    return [...known.values()].map(({ workload: like, pods, amounts }) => {
      const asked = new Map([...amounts].map(([key, amount]) => [key, Number(amount)]));
      // An object is one, however many pods it has.
      const isCounted = [...asked.keys()].every((key) => !key.startsWith('count/') || (free.get(key) ?? 0) >= 1);
      const ofPods = new Map([...asked].filter(([key]) => !key.startsWith('count/')));
      return { group: name, like, pods, asked, shape: isCounted ? recommendedShape(free, ofPods, pods) : null };
    });
  });
}

export function recommendationTable(rows: readonly Recommendation[]): string {
  if (rows.length === 0) return 'no workloads\n';
  return table([
    ['GROUP', 'LIKE', 'PODS', 'ASK FOR', 'CHANGE', 'REQUESTS'],
    ...rows.map(({ group, like, pods, shape }) => [
      group,
      like,
      `${pods}`,
      shape === null ? '-' : `${shape.pods}`,
      shape === null ? 'nothing fits' : CHANGES[shape.change],
      shape === null ? '' : textOf(shape.uses),
    ]),
  ]);
}

const CHANGES: Readonly<Record<RecommendedShape['change'], string>> = {
  asIs: 'none',
  fewer: 'fewer pods',
  smaller: 'smaller pods',
};

/** A recommendation as a JSON value. */
export function plainRecommendation({ group, like, pods, asked, shape }: Recommendation): object {
  const plain = (amounts: ReadonlyMap<Key, number>): object =>
    Object.fromEntries([...amounts].map(([key, amount]) => [key, formatAmount(key, BigInt(amount))]));
  return {
    group,
    like,
    pods,
    asked: plain(asked),
    recommended: shape === null ? null : { change: shape.change, pods: shape.pods, requests: plain(shape.uses) },
  };
}

function textOf(amounts: ReadonlyMap<Key, number>): string {
  return [...amounts].map(([key, amount]) => `${key}=${formatAmount(key, BigInt(amount))}`).join(' ');
}
