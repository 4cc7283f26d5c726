import type { Quota, GroupStatus } from '../../quota/index.js';
import { cashTable, plainStatus, usageTable } from '../../quota-command/report.js';
import { plainTopWorkload, topWorkloads, topWorkloadsTable, type TopWorkload } from '../../quota-command/top.js';
import type { Condition } from '../../kube/condition.js';
import type { DefaultFor } from '../../kube/quota/default-for.js';
import type { ComputedLimit, ComputedLimits } from '../../kube/quota/node-limit.js';
import { readGroup, type BorrowedHours } from '../../kube/quota/group-object.js';
import { borrowedHoursText } from '../controller/borrowed-hours.js';

/** How many of the largest workloads are shown. */
const LARGEST = 20;

/** A group with all data that limits its further admissions. */
export interface GroupAccount {
  readonly status: GroupStatus;
  /** Its ancestors, from the parent to the root. */
  readonly above: readonly GroupStatus[];
  readonly below: readonly GroupStatus[];
  readonly largest: readonly TopWorkload[];
  /** Conditions of its object; empty without an object. */
  readonly conditions: readonly Condition[];
  /** Namespaces whose objects without the group label it pays for; null for none. */
  readonly defaultFor: DefaultFor | null;
  /** Its limits from nodes, by key. */
  readonly nodeLimits: ComputedLimits;
  /** Hours beyond its guaranteed part; null where they are not counted. */
  readonly borrowedHours: BorrowedHours | null;
}

/**
 * Collects the account of a group; null if the ledger does not have the group. `object` is its BizGroupResourceQuota,
 * or null.
 */
export function accountOf(ledger: Quota, name: string, object: unknown, now: number): GroupAccount | null {
  const status = ledger.status(name, now);
  if (status === null) return null;
  const above: GroupStatus[] = [];
  for (let at = status.parent; at !== ''; at = above.at(-1)?.parent ?? '') {
    const parent = ledger.status(at, now);
    if (parent === null) break;
    above.push(parent);
  }
  const below = status.children.flatMap((child) => ledger.status(child, now) ?? []);
  const largest = topWorkloads([status], ledger.charges(name), null).slice(0, LARGEST);
  const group = object === null ? null : readGroup(object);
  return {
    status,
    above,
    below,
    largest,
    conditions: group?.status.conditions ?? [],
    defaultFor: group?.defaultFor ?? null,
    nodeLimits: group?.status.nodeLimits ?? {},
    borrowedHours: group?.status.borrowedHours ?? null,
  };
}

/** Formats an account as text and tables. */
export function accountText({ status, above, below, largest, conditions, ...rest }: GroupAccount): string {
  const { defaultFor, nodeLimits, borrowedHours } = rest;
  const heads = [
    `${status.name}: ${status.mode}, ${status.workloads} workloads, ${status.reservations} reserved, ${below.length} children`,
    ...(defaultFor === null ? [] : [`  pays for objects without the group label ${namespacesText(defaultFor)}`]),
    ...Object.entries(nodeLimits).map(([key, computed]) => `  ${key} from nodes: ${nodeLimitText(computed)}`),
    ...(borrowedHours === null ? [] : [`  had beyond its guaranteed part: ${borrowedHoursText(borrowedHours)}`]),
  ];
  const stated = conditions.map(
    ({ type, status: value, reason, message }) => `  ${type}=${value} ${reason}${message === '' ? '' : `: ${message}`}`,
  );
  const shown = [...above].reverse().concat(status, below);
  return [
    `${[...heads, ...stated].join('\n')}\n`,
    usageTable(shown),
    cashTable(shown),
    largest.length === 0 ? '' : topWorkloadsTable(largest),
    status.workloads > largest.length
      ? `and ${status.workloads - largest.length} more: quota top workloads --group ${status.name}\n`
      : '',
  ]
    .filter((text) => text !== '')
    .join('\n');
}

function nodeLimitText({ limit, total, nodes, shrinksTo, shrinksAt }: ComputedLimit): string {
  const shrinks =
    shrinksAt === undefined ? '' : `; shrinks to ${shrinksTo ?? ''} at ${shrinksAt} unless nodes come back`;
  return `${limit} of ${total} on ${nodes} nodes${shrinks}`;
}

function namespacesText({ namespaces, namespaceSelector }: DefaultFor): string {
  const listed = namespaces.length === 0 ? [] : [`in ${namespaces.join(', ')}`];
  const selected =
    namespaceSelector === null ? [] : [`in namespaces that ${JSON.stringify(namespaceSelector)} selects`];
  return [...listed, ...selected].join(' and ');
}

/** Formats an account as one JSON value. */
export function plainAccount({
  status,
  above,
  below,
  largest,
  conditions,
  defaultFor,
  nodeLimits,
  borrowedHours,
}: GroupAccount): Readonly<Record<string, unknown>> {
  return {
    ...plainStatus(status),
    above: above.map(plainStatus),
    below: below.map(plainStatus),
    largest: largest.map(plainTopWorkload),
    stated: conditions,
    ...(defaultFor === null ? {} : { defaultFor }),
    ...(Object.keys(nodeLimits).length === 0 ? {} : { nodeLimits }),
    ...(borrowedHours === null ? {} : { borrowedHours: borrowedHours.hours }),
  };
}
