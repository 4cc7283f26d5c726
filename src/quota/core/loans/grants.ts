import { refusal } from '../admission/admission.js';
import { usedAt, type Budget, type Grant } from '../state/budget.js';
import { LazyDecision, type Decision, type Violation } from '../admission/decision.js';
import type { Group } from '../state/group.js';
import { MIN_PERIOD_MS, declarationOf, declaredId, readHours, type DeclaredGrant } from '../state/declared-grant.js';
import { CASH, cashTarget, type Key } from '../../../manifests/key.js';
import { monthOf, periodAfter, periodsBetween } from '../amounts/period.js';
import { announceThreshold } from '../pods/threshold.js';
import type { Quantity } from '../../../manifests/quantity.js';
import { budgetOf } from '../admission/recompute.js';
import type { QuotaState } from '../state/state.js';

/**
 * An extra amount for a budget, for a limited time or repeated: a thousand card-hours every week, fifty more until
 * Friday.
 */
export interface GrantSpec {
  /** Unique within the group. */
  readonly id: string;
  readonly group: string;
  /** A cash key of the group: `cash/requests.nvidia.com/gpu`. */
  readonly key: Key;
  /** In unit-hours; a bigint in base units times milliseconds. */
  readonly amount: Quantity;
  /** Default: now. */
  readonly validFrom?: number | undefined;
  /** Default: never. The unused part is lost at this time. */
  readonly expiresAt?: number | undefined;
  /** Default: `topup`. */
  readonly mode?: 'topup' | 'reset' | undefined;
  /** For a reset: the maximum unused amount that is carried over; default none. */
  readonly carryOverMax?: Quantity | undefined;
  /** Period of repetition, milliseconds. */
  readonly everyMs?: number | undefined;
}

/** After a long time without commands, up to this many periods are executed one by one; earlier ones are skipped. */
const MAX_CATCH_UP = 1000;
/** Retry interval of a single declared grant that the parent's budget cannot cover. */
const RETRY_MS = 60_000;

/** Adds a grant to a budget, now or later. The grant of a child is taken from its parent's budget when it begins. */
export function addGrant(state: QuotaState, spec: GrantSpec): Decision {
  const found = state.group(spec.group);
  if (found === undefined) return refusal(state, 'GroupNotFound', `there is no group ${spec.group.slice(0, 80)}`);
  const target = cashTarget(spec.key);
  const known = target === null ? undefined : budgetOf(found, target);
  if (target === null || known === undefined)
    return refusal(state, 'UnknownKey', `group ${found.name} has no budget ${spec.key.slice(0, 80)}`);
  if (!/^[A-Za-z0-9._/@:-]{1,128}$/.test(spec.id))
    return refusal(state, 'InvalidName', `"${spec.id.slice(0, 80)}" is not a valid id of a grant`);
  if (found.budgets.some(({ grants }) => grants.some(({ id }) => id === spec.id)))
    return refusal(state, 'GrantExists', `group ${found.name} already has a grant ${spec.id}`);
  const amount = readHours(target, spec.amount);
  const carryOverMax = readHours(target, spec.carryOverMax ?? 0);
  if (amount === null || carryOverMax === null)
    return refusal(state, 'InvalidQuantity', `invalid amount of a grant: ${spec.amount}`);
  const validFrom = spec.validFrom ?? state.now;
  const expiresAt = spec.expiresAt ?? Infinity;
  const everyMs = spec.everyMs ?? 0;
  if (
    !Number.isSafeInteger(validFrom) ||
    !(expiresAt > Math.max(validFrom, state.now)) ||
    !(expiresAt === Infinity || Number.isSafeInteger(expiresAt))
  ) {
    return refusal(state, 'InvalidTime', `invalid time of a grant: from ${validFrom} to ${expiresAt}`);
  }
  if (everyMs !== 0 && !(Number.isSafeInteger(everyMs) && everyMs >= MIN_PERIOD_MS))
    return refusal(state, 'InvalidTime', `invalid period of a grant: ${everyMs} ms`);
  const grant: Grant = {
    id: spec.id,
    amount,
    validFrom,
    expiresAt,
    mode: spec.mode ?? 'topup',
    carryOverMax,
    every: everyMs,
    left: null,
  };
  if (validFrom <= state.now) return begin(state, found, known.key, grant, state.now);
  state.revision++;
  const group = state.own(found);
  budgetOf(group, target)?.grants.push(grant);
  state.timers.push({ at: validFrom, kind: 'grantBegins', subject: grant.id, group: group.name });
  state.groupChanged(group);
  state.emit({ type: 'grantAdded', group: group.name, subject: grant.id });
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [group.name] });
}

/** Starts a due grant. `until` is the time to which the state advances. */
export function grantBegins(state: QuotaState, groupName: string, id: string, until: number): void {
  const found = state.group(groupName);
  const pending = found?.budgets.find((budget) =>
    budget.grants.some((grant) => grant.id === id && grant.left === null),
  );
  const grant = pending?.grants.find((candidate) => candidate.id === id);
  if (found === undefined || pending === undefined || grant === undefined || grant.validFrom > state.now) return;
  const group = state.own(found);
  const budget = group.budgets.find(({ key }) => key === pending.key) as Budget;
  budget.grants = budget.grants.filter((candidate) => candidate.id !== id);
  const decision = begin(state, group, budget.key, grant, until);
  if (decision.allowed) return;
  state.revision++;
  if (grant.every !== 0) repeat(state, group, budget, grant, until);
  else if (isDeclared(group, grant)) put(state, group, budget, { ...grant, validFrom: state.now + RETRY_MS });
  recordOutcome(group, grant, { refused: decision.message });
  state.groupChanged(group);
  state.emit({ type: 'grantRefused', group: groupName, subject: id, code: decision.code, reason: decision.message });
}

/** Expires a grant; its unused part is lost. */
export function grantEnds(state: QuotaState, groupName: string, id: string): void {
  const found = state.group(groupName);
  const live = found?.budgets.find((budget) => budget.grants.some((grant) => grant.id === id && grant.left !== null));
  if (found === undefined || live === undefined) return;
  const group = state.own(found);
  const budget = group.budgets.find(({ key }) => key === live.key) as Budget;
  takeUsage(budget, state.now);
  const grant = budget.grants.find((candidate) => candidate.id === id);
  if (grant === undefined || grant.expiresAt > state.now) return;
  state.revision++;
  budget.grants = budget.grants.filter((candidate) => candidate !== grant);
  change(state, group, budget, -(grant.left ?? 0n));
  state.groupChanged(group);
  state.emit({
    type: 'grantEnded',
    group: groupName,
    subject: id,
    amounts: new Map([[CASH + budget.key, grant.left ?? 0n]]),
  });
}

function begin(state: QuotaState, found: Group, key: Key, grant: Grant, until: number): Decision {
  const group = state.own(found);
  const budget = budgetOf(group, key);
  if (budget === undefined) return refusal(state, 'UnknownKey', `group ${group.name} has no budget ${key}`);
  const left = budget.hard - usedAt(budget, state.now);
  const kept = grant.mode === 'topup' || left <= 0n ? 0n : left < grant.carryOverMax ? left : grant.carryOverMax;
  const added = grant.mode === 'topup' ? grant.amount : grant.amount + kept - left;
  const violation = parentShort(state, group, budget.key, added);
  if (violation !== null)
    return new LazyDecision({
      allowed: false,
      code: 'ParentExceeded',
      revision: state.revision,
      violations: [violation],
    });
  state.revision++;
  takeUsage(budget, state.now);
  const others = budget.grants.filter((other) => grant.mode === 'topup' || other.left === null);
  const live: Grant = {
    ...grant,
    id: grant.every === 0 ? grant.id : `${grant.id}@${grant.validFrom}`,
    amount: grant.amount + kept,
    left: grant.amount + kept,
    every: 0,
  };
  recordOutcome(group, grant, { begun: grant.validFrom, refused: '' });
  budget.grants = [...others, live];
  change(state, group, budget, added);
  if (live.expiresAt !== Infinity)
    state.timers.push({ at: live.expiresAt, kind: 'grantEnds', subject: live.id, group: group.name });
  repeat(state, group, budget, grant, until);
  state.groupChanged(group);
  state.emit({
    type: 'grantBegan',
    group: group.name,
    subject: live.id,
    amounts: new Map([[CASH + key, live.left ?? 0n]]),
  });
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [group.name] });
}

/** Schedules the next period of a repeated grant. */
function repeat(state: QuotaState, group: Group, budget: Budget, grant: Grant, until: number): void {
  if (grant.every === 0) return;
  const behind = periodsBetween(grant.validFrom, until, grant.every);
  const validFrom = periodAfter(grant.validFrom, grant.every, behind > MAX_CATCH_UP ? behind - MAX_CATCH_UP : 1);
  const next: Grant = { ...grant, validFrom, expiresAt: grant.expiresAt + validFrom - grant.validFrom };
  if (!Number.isSafeInteger(next.validFrom)) return;
  const end = group.declared.find(({ name }) => declaredId(name) === grant.id)?.until ?? Infinity;
  if (next.validFrom < end) put(state, group, budget, { ...next, expiresAt: Math.min(next.expiresAt, end) });
}

/** Schedules a grant. */
function put(state: QuotaState, group: Group, budget: Budget, grant: Grant): void {
  budget.grants.push(grant);
  state.timers.push({ at: grant.validFrom, kind: 'grantBegins', subject: grant.id, group: group.name });
}

/**
 * Replaces the declared grants of a group. Grants that have begun stay unchanged; a changed grant takes effect in its
 * next period, a removed one has no next period.
 */
export function declareGrants(state: QuotaState, group: Group, wanted: readonly DeclaredGrant[]): void {
  const before = group.declared;
  if (before.length === 0 && wanted.length === 0) return;
  const isKept = (grant: DeclaredGrant): boolean =>
    before.some((old) => declarationOf([old]) === declarationOf([grant]));
  for (const { name, ...old } of before) {
    if (wanted.some((grant) => grant.name === name && isKept(grant))) continue;
    const budget = budgetOf(group, old.key);
    if (budget !== undefined)
      budget.grants = budget.grants.filter(({ id, left }) => left !== null || id !== declaredId(name));
  }
  group.declared = wanted.map((grant) => {
    const old = before.find(({ name }) => name === grant.name);
    if (old !== undefined && isKept(grant)) return old;
    const first = grant.every === 'month' ? monthOf(state.now) : (old?.anchor ?? state.now);
    return { ...grant, anchor: grant.from ?? first, begun: old?.begun ?? null };
  });
  for (const grant of group.declared) if (!isKept(grant)) schedule(state, group, grant);
  state.groupChanged(group);
}

/** Schedules the first period of a declared grant: the current period, or the first one that has not begun. */
function schedule(state: QuotaState, group: Group, grant: DeclaredGrant): void {
  const budget = budgetOf(group, grant.key);
  const { anchor, begun, every, expiresAfterMs, until } = grant;
  if (budget === undefined || anchor === null || (every === 0 && begun !== null)) return;
  let validFrom = periodAfter(anchor, every, periodsBetween(anchor, state.now, every));
  while (begun !== null && validFrom <= begun) validFrom = periodAfter(validFrom, every, 1);
  const expiresAt = Math.min(until, expiresAfterMs === 0 ? Infinity : validFrom + expiresAfterMs);
  if (expiresAt <= state.now || validFrom >= until) return;
  const { amount, mode, carryOver: carryOverMax } = grant;
  const id = declaredId(grant.name);
  put(state, group, budget, { id, amount, validFrom, expiresAt, mode, carryOverMax, every, left: null });
  if (validFrom <= state.now) grantBegins(state, group.name, id, state.now);
}

function isDeclared(group: Group, { id }: Grant): boolean {
  return group.declared.some(({ name }) => declaredId(name) === id);
}

/** Records the result of a declared grant. */
function recordOutcome(group: Group, { id }: Grant, outcome: Partial<Pick<DeclaredGrant, 'begun' | 'refused'>>): void {
  if (!group.declared.some(({ name }) => declaredId(name) === id)) return;
  group.declared = group.declared.map((grant) => (declaredId(grant.name) === id ? { ...grant, ...outcome } : grant));
}

/** Takes the usage since the last call from the grants, first from the one that expires first. */
function takeUsage(budget: Budget, now: number): void {
  const used = usedAt(budget, now);
  let due = used - budget.settled;
  budget.settled = used;
  const order = budget.grants.filter(({ left }) => left !== null).sort((a, b) => a.expiresAt - b.expiresAt);
  const left = new Map<string, bigint>();
  for (const grant of order) {
    const has = grant.left ?? 0n;
    const taken = due <= 0n ? 0n : due < has ? due : has;
    left.set(grant.id, has - taken);
    due -= taken;
  }
  budget.grants = budget.grants.map((grant) =>
    grant.left === null ? grant : { ...grant, left: left.get(grant.id) ?? 0n },
  );
}

/** Changes the amount of a budget, and the sum of children in the parent's budget. */
function change(state: QuotaState, group: Group, budget: Budget, amount: bigint): void {
  budget.hard += amount;
  announceThreshold(state, group, budget);
  const found = group.parent === '' ? undefined : state.group(group.parent);
  if (found === undefined || budgetOf(found, budget.key) === undefined) return;
  const parent = state.own(found);
  const above = budgetOf(parent, budget.key);
  if (above === undefined) return;
  above.childSum += amount;
  announceThreshold(state, parent, above);
  state.groupChanged(parent);
}

function parentShort(state: QuotaState, group: Group, key: Key, added: bigint): Violation | null {
  const parent = group.parent === '' ? undefined : state.group(group.parent);
  const budget = parent === undefined ? undefined : budgetOf(parent, key);
  if (parent === undefined || budget === undefined || added <= 0n) return null;
  const used = usedAt(budget, state.now);
  const short = used + added - budget.hard;
  return short <= 0n ? null : { group: parent.name, key: CASH + key, hard: budget.hard, used, requested: added, short };
}
