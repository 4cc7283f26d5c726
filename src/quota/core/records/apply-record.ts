import type { Amount } from '../../../manifests/amount.js';
import type { Budget } from '../state/budget.js';
import { childQuotaChange } from '../groups/child-quota.js';
import type { ReadSpec } from '../state/group-spec.js';
import { setHard, setLimits } from '../groups/group-create.js';
import { relayout } from '../groups/group-update.js';
import { bareGroup, listsOf, type Group } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import { restructure } from '../admission/cohort.js';
import { amountOfDigits } from '../amounts/digits.js';
import type { GroupRecord, PodRecord, StoredRecord } from './record.js';
import {
  readBudgets,
  readDeclared,
  readLimitReservation,
  readCandidates,
  readLoan,
  restorePod,
  readWorkload,
} from './record-format.js';
import type { ShapeDictionary } from './shape-dictionary.js';
import { childCashOf } from '../admission/recompute.js';
import { settle } from '../admission/release.js';
import { reservationKey } from '../state/reservation.js';
import { isLater } from '../state/workload.js';
import { scheduleThreshold } from '../pods/threshold.js';
import type { QuotaState } from '../state/state.js';

/**
 * Applies a record that another process wrote: the state becomes as if it had made the change itself, without tests and
 * events. Engines that share a store follow each other in this way.
 */
export function applyRecord(state: QuotaState, record: StoredRecord, dictionary: ShapeDictionary): void {
  const { key } = record;
  switch (record.kind) {
    case 'group':
      return record.value === null ? removeGroup(state, key) : putGroup(state, key, record.value);
    case 'pod':
      return putPod(state, key, record.value, dictionary);
    case 'loan': {
      const loan = record.value === null ? null : readLoan(key, record.value);
      state.putLoan(key, loan);
      if (loan?.state === 'pending')
        state.timers.push({ at: loan.validFrom, kind: 'loanBegins', subject: key, group: loan.borrower });
      if (loan?.state === 'running')
        state.timers.push({ at: loan.until, kind: 'loanEnds', subject: key, group: loan.borrower });
      return;
    }
    case 'workload':
      return putWorkload(state, record, dictionary);
    case 'reservation':
      return putReservation(state, record, dictionary);
  }
}

function putWorkload(
  state: QuotaState,
  record: Extract<StoredRecord, { readonly kind: 'workload' }>,
  dictionary: ShapeDictionary,
): void {
  const { key, group: name, value } = record;
  const entry = value === null ? null : readWorkload(key, name, value, dictionary, state.shapes);
  const old = state.workloads.get(key);
  const from = old !== undefined && old.group !== name ? state.group(old.group) : undefined;
  // A deleted record says only that the workload left this group.
  if (from !== undefined && entry === null) return;
  if (from !== undefined && old !== undefined && entry !== null && isLater(old, entry)) return;
  if (from !== undefined) settle(state, state.own(from), key, null, candidatesOf(state, key, from.name));
  const group = state.group(name);
  if (group !== undefined) settle(state, state.own(group), key, entry, candidatesOf(state, key, name));
}

function putReservation(
  state: QuotaState,
  record: Extract<StoredRecord, { readonly kind: 'reservation' }>,
  dictionary: ShapeDictionary,
): void {
  const group = state.group(record.group);
  const workload = record.value?.workload ?? state.reservations.get(record.key)?.workload;
  if (group === undefined || workload === undefined) return;
  const candidates = record.value === null ? [] : readCandidates(record.group, record.value, dictionary, state.shapes);
  const entry = state.workloads.get(workload);
  settle(state, state.own(group), workload, entry?.group === group.name ? entry : null, candidates);
  for (const { id, expiresAt } of candidates)
    state.timers.push({ at: expiresAt, kind: 'reservation', subject: id, group: group.name });
}

function candidatesOf(state: QuotaState, workload: string, group: string) {
  return state.reservations.get(reservationKey(workload, group))?.candidates ?? [];
}

/** The usage of pods is already part of their groups' budgets. */
function putPod(state: QuotaState, id: string, record: PodRecord | null, dictionary: ShapeDictionary): void {
  const pod = record === null ? null : restorePod(id, record, dictionary, state.shapes);
  const old = state.pods.get(id);
  const last = pod?.spans.at(-1);
  for (const { group: name, life } of [...(old?.spans ?? []), ...(pod?.spans ?? [])]) {
    const group = state.group(name);
    if (group === undefined || group.life !== life) continue;
    const runs = pod?.end === Infinity && last?.group === name && last.life === life;
    if (runs) listsOf(state.own(group)).pods.set(id, true);
    else if (group.pods.has(id)) listsOf(state.own(group)).pods.delete(id);
  }
  state.putPod(id, pod);
  if (pod !== null && pod.end !== Infinity && pod.isRetained !== true) {
    const at = Math.max(state.now, state.latest) + state.policy.lateEventsMs;
    state.timers.push({ at, kind: 'podForgotten', subject: id, group: '' });
  }
}

function putGroup(state: QuotaState, name: string, record: GroupRecord): void {
  const known = state.group(name);
  if (known !== undefined && known.life !== record.life) removeGroup(state, name);
  const group = state.own(state.group(name) ?? addGroup(state, name, record));
  const budgets = readBudgets(record.budgets);
  const spec = specOf(record, budgets);
  const above = record.parent === '' ? undefined : state.group(record.parent);
  const parent = above === undefined ? undefined : state.own(above);
  if (parent !== undefined) addToChildren(state, parent, childQuotaChange(parent, spec, group).hard);
  restructure(state, group, () => {
    relayout(state, group, spec);
    group.mode = record.mode;
    setHard(group, spec);
    setLimits(group, spec);
  });
  for (const budget of budgets) budget.childSum = budget.listed ? childCashOf(state, group, budget.key) : 0n;
  Object.assign(group, {
    budgets,
    terminating: record.terminating,
    limitReservation: readLimitReservation(record),
    declared: readDeclared(record),
  });
  state.lives = Math.max(state.lives, record.life);
  if (parent !== undefined) recountCash(state, parent);
  setDates(state, group);
  state.groupChanged(group);
}

function addGroup(state: QuotaState, name: string, record: GroupRecord): Group {
  const parent = record.parent === '' ? undefined : state.group(record.parent);
  const group = bareGroup(
    name,
    record.life,
    record.parent,
    parent === undefined ? 0 : parent.depth + 1,
    state.layouts.layoutOf([]),
    state.blocks,
  );
  state.add(group);
  if (parent !== undefined) {
    const owned = state.own(parent);
    owned.children = [...owned.children, name];
  }
  return group;
}

function removeGroup(state: QuotaState, name: string): void {
  const found = state.group(name);
  if (found === undefined) return;
  const group = state.own(found);
  const keys: string[] = [];
  group.workloads.forEach(state.workloads, ({ key }) => keys.push(key));
  group.reserved.forEach((_, key) => keys.push(state.reservations.get(key)?.workload ?? ''));
  for (const key of new Set(keys)) settle(state, group, key, null, []);
  restructure(state, group, () => {
    group.mode = 'carved';
  });
  const above = group.parent === '' ? undefined : state.group(group.parent);
  if (above !== undefined) {
    const parent = state.own(above);
    parent.children = parent.children.filter((child) => child !== name);
    const none: ReadSpec = {
      ok: true,
      hard: new Map(),
      cash: new Map(),
      mode: 'carved',
      borrow: new Map(),
      lend: new Map(),
    };
    addToChildren(state, parent, childQuotaChange(parent, none, group).hard);
    recountCash(state, parent);
  }
  state.remove(group);
}

function addToChildren(state: QuotaState, parent: Group, take: ReadonlyMap<Key, Amount>): void {
  restructure(state, parent, () => {
    for (const [key, amount] of take) {
      const slot = parent.layout.slots.get(key) as number;
      parent.amounts.addChildSum(slot, amount);
    }
  });
}

function recountCash(state: QuotaState, parent: Group): void {
  for (const budget of parent.budgets) if (budget.listed) budget.childSum = childCashOf(state, parent, budget.key);
}

function setDates(state: QuotaState, group: Group): void {
  for (const budget of group.budgets) {
    scheduleThreshold(state, group, budget);
    for (const { id, left, validFrom, expiresAt } of budget.grants) {
      if (left === null) state.timers.push({ at: validFrom, kind: 'grantBegins', subject: id, group: group.name });
      else if (expiresAt !== Infinity)
        state.timers.push({ at: expiresAt, kind: 'grantEnds', subject: id, group: group.name });
    }
  }
}

function specOf(record: GroupRecord, budgets: readonly Budget[]): ReadSpec {
  const limits = (written: GroupRecord['borrow']): ReadonlyMap<Key, Amount> =>
    new Map(
      record.hard.flatMap(([key], slot): [Key, Amount][] => {
        const limit = amountOfDigits(written[slot] ?? null);
        return limit === Infinity ? [] : [[key, limit]];
      }),
    );
  return {
    ok: true,
    hard: new Map(record.hard.map(([key, amount]) => [key, amountOfDigits(amount)])),
    cash: new Map(budgets.filter(({ listed }) => listed).map(({ key, hard }) => [key, hard])),
    mode: record.mode,
    borrow: limits(record.borrow),
    lend: limits(record.lend),
  };
}
