import { minus, type Amount } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { newBudget, usedAt, type Budget } from '../state/budget.js';
import { applyChildQuota, childQuotaChange } from './child-quota.js';
import { LazyDecision, type Decision, type Violation, type Warning } from '../admission/decision.js';
import { loanRefused, layoutOf, parentRefusal, setHard, setLimits, unreachable } from './group-create.js';
import type { GroupGrant } from '../state/declared-grant.js';
import { declareLoans, withLoans } from '../loans/declare-loans.js';
import type { GroupLoan } from '../state/declared-loan.js';
import { declareGrants } from '../loans/grants.js';
import { GroupAmounts } from '../state/group-amounts.js';
import { hardOf } from '../state/group-hard.js';
import { readSpec, type GroupSpec, type Hard, type ReadSpec } from '../state/group-spec.js';
import { uncertainOf, type Group, type Mode } from '../state/group.js';
import { CASH, type Key } from '../../../manifests/key.js';
import { retryOverdueLoans } from '../loans/loans.js';
import type { Quantity } from '../../../manifests/quantity.js';
import { restructure } from '../admission/cohort.js';
import { countRunning } from '../pods/pods.js';
import { announceThreshold } from '../pods/threshold.js';
import { childCashOf, childrenOf, selfUsedOf } from '../admission/recompute.js';
import type { QuotaState } from '../state/state.js';

/** Changes of a group; absent fields stay. `hard` is replaced as a whole. */
export interface GroupUpdate {
  readonly name: string;
  /** Refused if it differs from the present parent: groups do not move. */
  readonly parent?: string | undefined;
  readonly hard?: Hard | undefined;
  readonly mode?: Mode | undefined;
  readonly borrow?: Hard | undefined;
  readonly lend?: Hard | undefined;
  /** Replaced as a whole. A grant that has begun is given again only under another name, or in its next period. */
  readonly grants?: readonly GroupGrant[] | undefined;
  /** Replaced as a whole: loans that are missing here end now. */
  readonly loans?: readonly GroupLoan[] | undefined;
  /** Allows limits below the children's quotas. */
  readonly force?: boolean | undefined;
  /**
   * The update was admitted for an object with this generation, which may or may not follow. Until a later generation
   * is observed, for at most `ttlMs`, the parent is charged the larger of the present and the new limit of each key,
   * and workloads and children are admitted by the smaller one.
   */
  readonly reserve?: { readonly generation: number; readonly ttlMs: number } | undefined;
  /**
   * The update is the observed object, with this generation. It changes nothing while limits are reserved for a later
   * generation.
   */
  readonly observed?: number | undefined;
}

/**
 * Changes the limits of a group. Increases are charged to the parent. A limit below the usage is allowed and only
 * blocks growth.
 */
export function updateGroup(state: QuotaState, update: GroupUpdate): Decision {
  const decision = tryUpdate(state, update);
  if (!decision.allowed)
    state.emit({ type: 'denied', group: update.name.slice(0, 80), code: decision.code, reason: decision.message });
  return decision;
}

function tryUpdate(state: QuotaState, update: GroupUpdate): Decision {
  const group = state.group(update.name);
  if (group === undefined) return refusal(state, 'GroupNotFound', `there is no group ${update.name.slice(0, 80)}`);
  if (update.parent !== undefined && update.parent !== group.parent) {
    return refusal(
      state,
      'ParentImmutable',
      `the parent of group ${group.name} is "${group.parent}" and cannot be changed`,
    );
  }
  if (isReservedBeyond(group, update, state.now))
    return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [group.name] });
  const loaned = update.hard === undefined ? null : withLoans(state, group.name, update.hard);
  const lentOut = loaned?.below[0];
  if (lentOut !== undefined && update.force !== true)
    return refusal(state, 'LoanRefused', `group ${group.name} has lent more ${lentOut} than its new limit`);
  const wanted = completed(group, loaned === null ? update : { ...update, hard: loaned.hard });
  const read = readSpec(update.reserve === undefined ? wanted : { ...wanted, hard: largerLimits(group, wanted.hard) });
  if (!read.ok) return refusal(state, read.code, read.reason);
  const parent = group.parent === '' ? undefined : state.group(group.parent);
  return (
    (parent === undefined ? null : parentRefusal(state, parent, read, group)) ??
    childConflict(state, group, read, update.force === true) ??
    cashConflict(state, group, read) ??
    loanConflict(state, group, read, update) ??
    applied(state, group, read, update, wanted.hard)
  );
}

/** Fills in absent fields; limits on lending and borrowing of removed keys are dropped. */
function completed(group: Group, update: GroupUpdate): Omit<GroupSpec, 'name' | 'parent'> {
  const mode = update.mode ?? group.mode;
  const hard =
    update.hard ??
    Object.fromEntries([
      ...group.layout.keys.map((key, slot): [Key, bigint] => [key, BigInt(group.amounts.hard(slot))]),
      ...group.budgets.filter(({ listed }) => listed).map(({ key, base }): [Key, bigint] => [CASH + key, base]),
    ]);
  const kept = (limitAt: (slot: number) => Amount): Hard =>
    Object.fromEntries(
      group.layout.keys.flatMap((key, slot): [Key, bigint][] => {
        const limit = limitAt(slot);
        return limit === Infinity || mode === 'carved' || !Object.hasOwn(hard, key) ? [] : [[key, BigInt(limit)]];
      }),
    );
  return {
    hard,
    mode,
    borrow: update.borrow ?? kept((slot) => group.amounts.borrowLimit(slot)),
    lend: update.lend ?? kept((slot) => group.amounts.lendLimit(slot)),
    grants: update.grants,
    loans: update.loans,
  };
}

/** Whether limits are reserved for a later generation than the observed one. */
function isReservedBeyond({ limitReservation }: Group, { observed }: GroupUpdate, now: number): boolean {
  return (
    observed !== undefined &&
    limitReservation !== null &&
    observed <= limitReservation.generation &&
    now < limitReservation.expiresAt
  );
}

/** The larger of present and wanted limit of each key. An unreadable limit stays, to be refused later. */
function largerLimits(group: Group, wanted: Hard): Hard {
  const present = completed(group, { name: group.name }).hard;
  const larger: Record<Key, Quantity> = { ...present, ...wanted };
  const wantedLimits = readSpec({ hard: wanted });
  if (!wantedLimits.ok) return wanted;
  const presentLimits = readSpec({ hard: present });
  if (!presentLimits.ok) return wanted;
  for (const [key, amount] of presentLimits.hard)
    if (amount > (wantedLimits.hard.get(key) ?? -1)) larger[key] = present[key] as Quantity;
  for (const [key, amount] of presentLimits.cash)
    if (amount > (wantedLimits.cash.get(key) ?? -1n)) larger[CASH + key] = present[CASH + key] as Quantity;
  return larger;
}

/**
 * By how much the limits that a group has until the object is observed exceed the smaller ones of those that may come.
 */
function uncertainty(group: Group, reserved: ReadSpec, wanted: Hard): ReadonlyMap<Key, bigint> {
  const read = readSpec({ hard: wanted });
  const uncertain = new Map<Key, bigint>();
  const note = (key: Key, has: bigint, present: bigint | null, next: bigint | null): void => {
    const least = [present, next].reduce<bigint>((less, limit) => (limit !== null && limit < less ? limit : less), has);
    if (least < has) uncertain.set(key, has - least);
  };
  if (!read.ok) return uncertain;
  for (const [key, amount] of reserved.hard) {
    const slot = group.layout.slots.get(key);
    const present = slot === undefined ? null : BigInt(group.amounts.hard(slot)) - uncertainOf(group, key);
    const next = read.hard.get(key);
    note(key, BigInt(amount), present, next === undefined ? null : BigInt(next));
  }
  for (const [name, amount] of reserved.cash) {
    const key = CASH + name;
    const budget = group.budgets.find((each) => each.key === name && each.listed);
    note(key, amount, budget === undefined ? null : budget.base - uncertainOf(group, key), read.cash.get(name) ?? null);
  }
  return uncertain;
}

function childConflict(state: QuotaState, group: Group, spec: ReadSpec, force: boolean): Decision | null {
  if (group.children.length === 0) return null;
  const added = [...spec.hard.keys()].filter((key) => !group.layout.slots.has(key));
  const addedCash = [...spec.cash.keys()].filter((key) => !group.layout.cashKeys.includes(key));
  for (const name of group.children) {
    const child = state.group(name) as Group;
    const missing =
      added.find((key) => !child.layout.slots.has(key)) ??
      addedCash.filter((key) => !child.layout.cashKeys.includes(key)).map((key) => CASH + key)[0];
    if (missing !== undefined) return refusal(state, 'ChildMissingKey', `child ${name} does not limit ${missing}`);
  }
  if (force) return null;
  const below: Violation[] = [];
  for (const [key, hard] of spec.hard) {
    const slot = group.layout.slots.get(key);
    const childSum = slot === undefined ? childrenOf(state, group, key).childSum : group.amounts.childSum(slot);
    if (hard >= childSum) continue;
    const short = BigInt(minus(childSum, hard));
    below.push({ group: group.name, key, hard: BigInt(hard), used: BigInt(childSum), requested: 0n, short });
  }
  for (const key of addedCash) {
    const [childSum, hard] = [childCashOf(state, group, key), spec.cash.get(key) ?? 0n];
    if (hard < childSum)
      below.push({ group: group.name, key: CASH + key, hard, used: childSum, requested: 0n, short: childSum - hard });
  }
  if (below.length === 0) return null;
  const reason = `the quotas of the children of ${group.name} exceed the new limits: ${below.map(({ key }) => key).join(', ')}`;
  return new LazyDecision({
    allowed: false,
    code: 'BelowChildren',
    revision: state.revision,
    violations: below,
    reason,
  });
}

/** Used hours are never returned: a budget cannot be lowered below its usage. */
function cashConflict(state: QuotaState, group: Group, spec: ReadSpec): Decision | null {
  const below: Violation[] = [];
  for (const budget of group.budgets) {
    const base = spec.cash.get(budget.key);
    if (base === undefined || !budget.listed || base >= budget.base) continue;
    const hard = budget.hard + base - budget.base;
    const used = usedAt(budget, state.now);
    if (hard < used)
      below.push({ group: group.name, key: CASH + budget.key, hard, used, requested: 0n, short: used - hard });
  }
  if (below.length === 0) return null;
  const reason = `the usage of ${group.name} exceeds the new budget: ${below.map(({ key }) => key).join(', ')}`;
  return new LazyDecision({
    allowed: false,
    code: 'CashBelowUsed',
    revision: state.revision,
    violations: below,
    reason,
  });
}

/** The refusal of a declared loan. An observed object is applied without the loan instead. */
function loanConflict(state: QuotaState, group: Group, spec: ReadSpec, update: GroupUpdate): Decision | null {
  if (spec.loans === undefined || spec.loans.length === 0 || update.observed !== undefined) return null;
  const fork = state.fork();
  applied(fork, fork.group(group.name) as Group, spec, { ...update, loans: [], reserve: undefined }, {});
  return declareLoans(fork, group.name, spec.loans);
}

function applied(state: QuotaState, old: Group, spec: ReadSpec, { reserve }: GroupUpdate, wanted: Hard): Decision {
  state.revision++;
  const group = state.own(old);
  const limitReservation =
    reserve === undefined
      ? null
      : {
          generation: reserve.generation,
          expiresAt: state.now + reserve.ttlMs,
          uncertain: uncertainty(group, spec, wanted),
        };
  const before = hardOf(group);
  const parent = group.parent === '' ? undefined : state.group(group.parent);
  if (parent !== undefined) applyChildQuota(state, state.own(parent), childQuotaChange(parent, spec, group));
  restructure(state, group, () => {
    relayout(state, group, spec);
    group.mode = spec.mode;
    setHard(group, spec);
    setLimits(group, spec);
  });
  rebudget(state, group, spec);
  group.limitReservation = limitReservation;
  state.groupChanged(group);
  state.emit({ type: 'groupUpdated', group: group.name, before, after: hardOf(group) });
  // A reservation for an expected object releases nothing.
  if (reserve === undefined)
    declareGrants(state, group, spec.grants ?? group.declared.filter(({ key }) => spec.cash.has(key)));
  if (parent !== undefined) retryOverdueLoans(state, group.parent);
  const refused =
    reserve !== undefined || spec.loans === undefined ? null : declareLoans(state, group.name, spec.loans);
  return new LazyDecision({
    allowed: true,
    code: 'OK',
    revision: state.revision,
    warnings: [...overQuota(state, group), ...unreachable(spec), ...loanRefused(refused)],
    path: [group.name],
  });
}

/** Moves the counters to the new keys; counters of added keys are computed from workloads and children. */
export function relayout(state: QuotaState, group: Group, spec: ReadSpec): void {
  const { layout: old, amounts: before } = group;
  const layout = layoutOf(state, spec);
  if (layout === old) return;
  const after = new GroupAmounts(layout.keys.length, state.blocks);
  group.layout = layout;
  group.amounts = after;
  const counted = layout.keys.some((key) => !old.slots.has(key)) ? selfUsedOf(state, group) : [];
  layout.keys.forEach((key, slot) => {
    const oldSlot = old.slots.get(key);
    const sums = oldSlot === undefined ? childrenOf(state, group, key) : null;
    after.setSelfUsed(slot, oldSlot === undefined ? (counted[slot] as Amount) : before.selfUsed(oldSlot));
    after.addChildSum(slot, sums?.childSum ?? before.childSum(oldSlot as number));
    after.addLent(slot, sums?.lent ?? before.lent(oldSlot as number));
    after.addSpilled(slot, sums?.spilled ?? before.spilled(oldSlot as number));
  });
}

/** Budgets in the order of the layout; budgets of removed keys follow and continue to count. */
function rebudget(state: QuotaState, group: Group, spec: ReadSpec): void {
  const old = group.budgets;
  const listed = group.layout.cashKeys.map((key): Budget => {
    const base = spec.cash.get(key) ?? 0n;
    const known = old.find((budget) => budget.key === key);
    if (known === undefined) {
      const budget = newBudget(key, base, state.now);
      budget.childSum = childCashOf(state, group, key);
      countRunning(state, group, budget);
      return budget;
    }
    if (known.listed) known.hard += base - known.base;
    else Object.assign(known, { hard: base, grants: [], childSum: childCashOf(state, group, key), listed: true });
    known.base = base;
    return known;
  });
  const retired = old.filter((budget) => !listed.includes(budget));
  for (const budget of retired) Object.assign(budget, { listed: false, hard: 0n, base: 0n, childSum: 0n, grants: [] });
  group.budgets = [...listed, ...retired];
  for (const budget of listed) announceThreshold(state, group, budget);
}

function overQuota(state: QuotaState, group: Group): readonly Warning[] {
  const warnings = group.layout.keys.flatMap((key, slot): Warning[] => {
    const used = group.amounts.totalUsed(slot);
    return used <= group.amounts.hard(slot)
      ? []
      : [
          {
            code: 'OverQuota',
            key,
            reason: `usage of ${key} exceeds the new limit; growth is refused until it is below`,
          },
        ];
  });
  if (warnings.length > 0)
    state.emit({ type: 'overQuota', group: group.name, reason: warnings.map(({ key }) => key).join(', ') });
  return warnings;
}
