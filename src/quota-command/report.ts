import { formatAmount, formatQuantity } from '../manifests/quantity.js';
import type { Decision, Amounts, GroupStatus } from '../quota/index.js';
import { cashTarget, type Key } from '../manifests/key.js';
import { table } from './table.js';
import { inTreeOrder } from './tree-order.js';

/** A decision as a JSON object, with amounts as quantities. */
export function plainDecision(decision: Decision): Readonly<Record<string, unknown>> {
  const { allowed, code, message, violations, warnings, hints, charged, path, revision, reservation } = decision;
  return {
    allowed,
    code,
    message,
    revision,
    reservation,
    ...(path.length === 0 ? {} : { path }),
    ...(charged.size === 0 ? {} : { charged: plainAmounts(charged) }),
    ...(violations.length === 0
      ? {}
      : {
          violations: violations.map(({ group, key, hard, used, requested, short }) => ({
            group,
            key,
            hard: formatAmount(key, hard),
            used: formatAmount(key, used),
            requested: formatQuantity(cashTarget(key) ?? key, requested),
            short: formatAmount(key, short),
          })),
        }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(Object.keys(hints).length === 0
      ? {}
      : { hints: { ...hints, ...(hints.freeAt === undefined ? {} : { freeAt: timeText(hints.freeAt) }) } }),
  };
}

/** The status of a group as a JSON object. */
export function plainStatus(status: GroupStatus): Readonly<Record<string, unknown>> {
  const { name, parent, mode, workloads, reservations, children, conditions, exhaustsAt } = status;
  const burnRate = Object.fromEntries(
    [...status.burnRate].map(([key, rate]) => [key, formatQuantity(cashTarget(key) ?? key, rate)]),
  );
  return {
    name,
    parent,
    mode,
    hard: plainAmounts(status.hard),
    used: plainAmounts(status.used),
    selfUsed: plainAmounts(status.selfUsed),
    room: plainAmounts(status.room),
    workloads,
    reservations,
    children,
    conditions,
    ...(status.burnRate.size === 0 ? {} : { burnRate, exhaustsAt: exhaustsAt === null ? null : timeText(exhaustsAt) }),
  };
}

/** Limits and usage of groups, one row per key; children follow their parents. */
export function usageTable(statuses: readonly GroupStatus[]): string {
  const rows = inTreeOrder(statuses).flatMap(({ status, indent }) => {
    const keys = [...status.hard.keys()].filter((key) => cashTarget(key) === null);
    return keys.map((key, index) => {
      const of = (amounts: Amounts): string => formatAmount(key, amounts.get(key) ?? 0n);
      return [
        index === 0 ? `${indent}${status.name}` : '',
        key,
        of(status.hard),
        of(status.used),
        of(status.selfUsed),
        of(status.room),
        share(key, status),
        remarkOf(status, key, index),
      ];
    });
  });
  if (rows.length === 0) return '';
  const remarks = rows.some((row) => row.at(-1) !== '') ? ['REMARK'] : [];
  return table([['GROUP', 'KEY', 'HARD', 'USED', 'OWN', 'ROOM', 'USE', ...remarks], ...rows]);
}

/** Usage of budgets, their burn rate and when they are exhausted. Empty without budgets. */
export function cashTable(statuses: readonly GroupStatus[]): string {
  const rows = inTreeOrder(statuses).flatMap(({ status, indent }) =>
    [...status.burnRate.keys()].map((key, index) => {
      const of = (amounts: Amounts): string => formatAmount(key, amounts.get(key) ?? 0n);
      const rate = formatQuantity(cashTarget(key) ?? key, status.burnRate.get(key) ?? 0n);
      const left = formatAmount(key, (status.hard.get(key) ?? 0n) - (status.used.get(key) ?? 0n));
      return [
        index === 0 ? `${indent}${status.name}` : '',
        key,
        of(status.hard),
        of(status.used),
        of(status.selfUsed),
        left,
        share(key, status),
        `${rate}/h`,
        index === 0 && status.exhaustsAt !== null ? timeText(status.exhaustsAt) : '',
      ];
    }),
  );
  return rows.length === 0
    ? ''
    : table([['GROUP', 'BUDGET', 'HARD', 'USED', 'OWN', 'LEFT', 'USE', 'RATE', 'SPENT AT'], ...rows]);
}

export function timeText(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : `${at}`;
}

function plainAmounts(amounts: Amounts): Readonly<Record<Key, string>> {
  return Object.fromEntries([...amounts].map(([key, amount]) => [key, formatAmount(key, amount)]));
}

/** Conditions of one key; conditions of the whole group are in its first row. */
function remarkOf({ conditions }: GroupStatus, key: Key, row: number): string {
  return conditions
    .filter(({ keys }) => (keys.length === 0 ? row === 0 : keys.includes(key)))
    .map(({ type }) => type)
    .join(', ');
}

function share(key: Key, { hard, used }: GroupStatus): string {
  const all = hard.get(key) ?? 0n;
  return all === 0n ? '-' : `${((used.get(key) ?? 0n) * 100n) / all}%`;
}
