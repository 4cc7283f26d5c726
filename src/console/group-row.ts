import { time } from '../kube/json.js';
import type { Condition } from '../kube/condition.js';
import type { GroupObject } from '../kube/quota/group-object.js';
import { cashTarget } from '../manifests/key.js';
import { parseQuantity } from '../manifests/quantity.js';
import type { GroupRow, HoursRow, LimitRow } from './rows.js';

/** Conditions that need attention while they have this status. */
const BAD: Readonly<Record<string, Condition['status']>> = {
  Ready: 'False',
  OverQuota: 'True',
  CashExhausted: 'True',
  CashLow: 'True',
  Misplaced: 'True',
  GrantRefused: 'True',
  GpusNotCharged: 'True',
  Terminating: 'True',
};

/** Thousandths: enough for parts of a limit. */
const DECIMALS = 3;

/** The row of a quota group, from its BizGroupResourceQuota with the status that the service wrote last. */
export function groupRow({ spec, status }: GroupObject): GroupRow {
  const hard: Readonly<Record<string, string>> = {
    ...Object.fromEntries(Object.entries(spec.hard).map(([key, amount]) => [key, String(amount)])),
    ...status.hard,
  };
  const keys = Object.keys(hard).sort();
  const limit = (key: string): LimitRow => {
    const [most, used, selfUsed] = [hard[key] ?? '', status.used?.[key], status.selfUsed?.[key]];
    const part = used === undefined ? null : partOf(used, most);
    return {
      key,
      hard: most,
      used,
      selfUsed,
      ...(part === null ? {} : { part }),
    };
  };
  const hours = (key: string): HoursRow => {
    const budget = status.budgets?.find((one) => one.key === key);
    const rate = status.burnRate?.[key];
    const nextMs = time(budget?.next);
    return {
      ...limit(key),
      key: cashTarget(key) ?? key,
      ...(budget === undefined ? {} : { left: budget.left }),
      rate,
      ...(nextMs === null ? {} : { nextMs }),
    };
  };
  const exhaustsAtMs = time(status.exhaustsAt);
  return {
    name: spec.name,
    parent: spec.parent ?? '',
    isElastic: spec.mode === 'elastic',
    limits: keys.filter((key) => cashTarget(key) === null).map(limit),
    hours: keys.filter((key) => cashTarget(key) !== null).map(hours),
    ...(exhaustsAtMs === null ? {} : { exhaustsAtMs }),
    workloads: status.workloads ?? 0,
    reservations: status.reservations ?? 0,
    notes: notesOf(status.conditions),
  };
}

function notesOf(conditions: readonly Condition[] | undefined): readonly string[] {
  if (conditions === undefined) return ['the quota service has not reported this group yet'];
  return conditions
    .filter(({ type, status }) => BAD[type] === status)
    .map(({ type, message }) => `${type === 'Ready' ? 'not ready' : type}: ${message}`);
}

/** `used` as a fraction of `hard`; null for a limit of 0, and for amounts that cannot be read. */
function partOf(used: string, hard: string): number | null {
  const [part, whole] = [parseQuantity(used, DECIMALS, 'down'), parseQuantity(hard, DECIMALS, 'down')];
  if (!part.ok || !whole.ok || Number(whole.amount) <= 0) return null;
  return Math.round((Number(part.amount) / Number(whole.amount)) * 1000) / 1000;
}
