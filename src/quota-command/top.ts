import { formatAmount } from '../manifests/quantity.js';
import { fittingShapes, type Charge, type FittingShape, type GroupStatus, type Shape } from '../quota/index.js';
import type { Key } from '../manifests/key.js';
import { timeText } from './report.js';
import { table } from './table.js';

/** Usage of a limit by a group or by one of its workloads, in base units of the key. */
interface Share {
  readonly key: Key;
  readonly amount: bigint;
  readonly hard: bigint;
  /** Usage as a fraction of `hard`, in hundredths of a percent. */
  readonly parts: number;
}

export interface TopGroup extends Share {
  readonly status: GroupStatus;
}

export interface TopWorkload extends Share {
  readonly charge: Charge;
}

/**
 * Sorts groups by the used fraction of their limit of `by`; without `by`, of the limit that is most used. Leaves out
 * groups without such a limit.
 */
export function topGroups(statuses: readonly GroupStatus[], by: Key | null): readonly TopGroup[] {
  const rows = statuses.flatMap((status): TopGroup[] => {
    const share = largestShare(status, status.used, by);
    return share === null ? [] : [{ status, ...share }];
  });
  return rows.sort((a, b) => b.parts - a.parts || order(a.status.name, b.status.name));
}

/**
 * Sorts workloads by the fraction that they use of their group's limits; `charges` belong to the groups of `statuses`.
 */
export function topWorkloads(
  statuses: readonly GroupStatus[],
  charges: readonly Charge[],
  by: Key | null,
): readonly TopWorkload[] {
  const groups = new Map(statuses.map((status) => [status.name, status]));
  const rows = charges.flatMap((charge): TopWorkload[] => {
    const status = groups.get(charge.group);
    const share = status === undefined ? null : largestShare(status, charge.amounts, by);
    return share === null ? [] : [{ charge, ...share }];
  });
  return rows.sort((a, b) => b.parts - a.parts || order(a.charge.workload, b.charge.workload));
}

/** How often a workload of a group could be admitted once more. */
export interface TopShape {
  readonly group: string;
  /** One of the workloads with this shape. */
  readonly example: string;
  readonly fitting: FittingShape;
}

/**
 * The distinct requests of the workloads of each group, and how often each still fits into it, the scarcest first. With
 * `by`, only requests that charge this key.
 */
export function topShapes(
  statuses: readonly GroupStatus[],
  charges: Iterable<Charge>,
  by: Key | null,
): readonly TopShape[] {
  const counts = new ShapeCounts(by);
  for (const charge of charges) counts.add(charge);
  return counts.top(statuses);
}

interface CountedShape {
  readonly example: string;
  readonly amounts: ReadonlyMap<Key, bigint>;
  count: number;
}

/** The same, charge by charge, for callers that leave the event loop to others between two charges. */
export class ShapeCounts {
  readonly #by: Key | null;
  readonly #ofGroup = new Map<string, Map<string, CountedShape>>();

  constructor(by: Key | null) {
    this.#by = by;
  }

  add({ group, workload, amounts }: Charge): void {
    if (amounts.size === 0 || (this.#by !== null && !amounts.has(this.#by))) return;
    const shapes = this.#ofGroup.get(group) ?? new Map<string, CountedShape>();
    this.#ofGroup.set(group, shapes);
    const signature = [...amounts].join(' ');
    const known = shapes.get(signature);
    if (known === undefined) shapes.set(signature, { example: workload, amounts, count: 1 });
    else known.count++;
  }

  top(statuses: readonly GroupStatus[]): readonly TopShape[] {
    const rows = statuses.flatMap((status): readonly TopShape[] => {
      const known = [...(this.#ofGroup.get(status.name)?.values() ?? [])];
      const free = new Map([...status.room].map(([key, amount]) => [key, Number(amount)]));
      const shapes = known.map((shape) => shapeIn(status, shape));
      return fittingShapes([{ name: status.name, free }], shapes).map((fitting, index) => ({
        group: status.name,
        example: known[index]?.example ?? '',
        fitting,
      }));
    });
    return rows.sort(
      (a, b) => a.fitting.fits - b.fitting.fits || order(a.group, b.group) || order(a.example, b.example),
    );
  }
}

function shapeIn(status: GroupStatus, { amounts, count }: CountedShape): Shape {
  const uses = new Map([...amounts].map(([key, amount]) => [key, Number(amount)]));
  for (const key of spentBy(status)) if (uses.has(key)) uses.set(`cash/${key}`, 1);
  return { name: [...amounts].map(([key, amount]) => `${key}=${formatAmount(key, amount)}`).join(' '), uses, count };
}

/** Keys whose budgets are used up: nothing that charges them is admitted. */
function spentBy({ budgets }: GroupStatus): readonly Key[] {
  return budgets.flatMap(({ key, left }) => (left <= 0n ? [key.slice('cash/'.length)] : []));
}

export function topShapesTable(rows: readonly TopShape[]): string {
  if (rows.length === 0) return 'no workloads\n';
  return table([
    ['GROUP', 'LIKE', 'WORKLOADS', 'FITS', 'BLOCKED BY', 'REQUESTS'],
    ...rows.map(({ group, example, fitting: { shape, fits, blockedBy } }) => [
      group,
      example,
      `${shape.count}`,
      `${fits}`,
      [...blockedBy.keys()].join(' '),
      shape.name,
    ]),
  ]);
}

/** The shape as a JSON value. */
export function plainTopShape({ group, example, fitting }: TopShape): Readonly<Record<string, unknown>> {
  const { shape, fits, blockedBy } = fitting;
  return { group, like: example, workloads: shape.count, fits, blockedBy: [...blockedBy.keys()], requests: shape.name };
}

export function topGroupsTable(rows: readonly TopGroup[]): string {
  if (rows.length === 0) return 'no groups\n';
  return table([
    ['GROUP', 'KEY', 'USED', 'HARD', 'USE', 'WORKLOADS', 'RESERVED', 'SPENT AT'],
    ...rows.map(({ status, key, amount, hard, parts }) => [
      status.name,
      key,
      formatAmount(key, amount),
      formatAmount(key, hard),
      percent(parts),
      `${status.workloads}`,
      `${status.reservations}`,
      status.exhaustsAt === null ? '' : timeText(status.exhaustsAt),
    ]),
  ]);
}

export function topWorkloadsTable(rows: readonly TopWorkload[]): string {
  if (rows.length === 0) return 'no workloads\n';
  return table([
    ['WORKLOAD', 'GROUP', 'PODS', 'KEY', 'CHARGED', 'HARD', 'USE'],
    ...rows.map(({ charge, key, amount, hard, parts }) => [
      `${charge.workload}${charge.isReserved ? ' (reserved)' : ''}`,
      charge.group,
      `${charge.pods}`,
      key,
      formatAmount(key, amount),
      formatAmount(key, hard),
      percent(parts),
    ]),
  ]);
}

/** The group as a JSON value, with amounts as quantities. */
export function plainTopGroup({ status, key, amount, hard, parts }: TopGroup): Readonly<Record<string, unknown>> {
  const { name, workloads, reservations, exhaustsAt } = status;
  return {
    group: name,
    ...plainShare(key, amount, hard, parts),
    workloads,
    reservations,
    exhaustsAt: exhaustsAt === null ? null : timeText(exhaustsAt),
  };
}

/** The workload as a JSON value, with all its charges. */
export function plainTopWorkload({ charge, key, amount, hard, parts }: TopWorkload): Readonly<Record<string, unknown>> {
  const { workload, group, pods, isReserved, amounts } = charge;
  const charged = Object.fromEntries([...amounts].map(([each, value]) => [each, formatAmount(each, value)]));
  return { workload, group, pods, reserved: isReserved, ...plainShare(key, amount, hard, parts), charged };
}

function plainShare(key: Key, amount: bigint, hard: bigint, parts: number): Readonly<Record<string, unknown>> {
  return {
    key,
    used: formatAmount(key, amount),
    hard: formatAmount(key, hard),
    percent: Number.isFinite(parts) ? parts / 100 : null,
  };
}

function largestShare({ hard: limits }: GroupStatus, amounts: ReadonlyMap<Key, bigint>, by: Key | null): Share | null {
  let largest: Share | null = null;
  for (const [key, hard] of limits) {
    if (by !== null && key !== by) continue;
    const amount = amounts.get(key) ?? 0n;
    // Any usage of a zero limit sorts first.
    const parts = hard === 0n ? (amount === 0n ? 0 : Infinity) : Number((amount * 10_000n) / hard);
    if (largest === null || parts > largest.parts) largest = { key, amount, hard, parts };
  }
  return largest;
}

function percent(parts: number): string {
  return Number.isFinite(parts) ? `${(parts / 100).toFixed(0)}%` : 'over';
}

function order(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
