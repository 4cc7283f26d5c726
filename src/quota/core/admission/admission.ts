import { minus, plus, quotientOf, type Amount } from '../../../manifests/amount.js';
import { usedAt, type Budget } from '../state/budget.js';
import { budgetReturnsAt, roomReturnsAt } from './retry-after.js';
import { LazyDecision, type Decision, type Hints, type Violation } from './decision.js';
import { uncertainOf, type Chain, type Group } from '../state/group.js';
import { CASH, type Key } from '../../../manifests/key.js';
import type { Layout } from '../amounts/layout.js';
import { charge, roomOf } from './cohort.js';
import type { Code } from '../amounts/refusal.js';
import type { PodSetCharge } from '../state/request-shape.js';
import type { QuotaState } from '../state/state.js';
import { addPods, emptyChargeVector, chargeVectorOf, type ChargeVector } from './charge-vector.js';
import { chargedCount, type Workload } from '../state/workload.js';

/** Result of testing a workload against a group and its ancestors. */
export interface FitResult {
  /** Null if the workload fits. */
  readonly decision: Decision | null;
  /** Change of the group's charge, by slot. */
  readonly delta: ChargeVector;
  readonly chain: Chain;
}

/**
 * Tests whether `workload` may be charged to `group`; its charges were `before`. Only keys whose charge grows are
 * tested, so that a workload can be scaled down or get a new image in a group that is over its quota.
 */
export function test(
  state: QuotaState,
  group: Group,
  workload: Workload,
  before: ChargeVector | null,
  now: number,
): FitResult {
  return testChange(state, group, workload, before, chargeVectorOf(group.layout, workload), now);
}

/** `test` for known charges; `after` becomes the difference. */
export function testChange(
  state: QuotaState,
  group: Group,
  workload: Workload,
  before: ChargeVector | null,
  after: ChargeVector,
  now: number,
): FitResult {
  const delta = after;
  const chain = state.chainOf(group);
  let grows = before === null;
  if (before !== null) {
    for (let slot = 0; slot < delta.length; slot++) {
      delta[slot] = minus(delta[slot] as Amount, before[slot] as Amount);
      if ((delta[slot] as Amount) > 0) grows = true;
    }
  }
  if (!grows) return { decision: null, delta, chain };
  if (group.terminating)
    return { decision: refusal(state, 'GroupTerminating', `group ${group.name} is being deleted`), delta, chain };
  const unclear = unclearRequest(state, group, workload);
  if (unclear !== null) return { decision: unclear, delta, chain };
  let violations: Violation[] | null = null;
  const keys = group.layout.keys.length;
  for (let slot = 0; slot < delta.length; slot++) {
    const need = delta[slot] as Amount;
    if (need <= 0) continue;
    const violation = slot < keys ? overQuota(state, chain, slot, need) : cashSpent(group, slot - keys, need, now);
    if (violation !== null) (violations ??= []).push(violation);
  }
  return {
    decision: violations === null ? null : denial(state, chain, workload, before, violations, now),
    delta,
    chain,
  };
}

/** Charges a tested difference to an owned chain. */
export function commit(state: QuotaState, chain: Chain, delta: ChargeVector): void {
  const keys = chain.first.layout.keys.length;
  for (let slot = 0; slot < keys; slot++) {
    const amount = delta[slot] as Amount;
    if (amount !== 0) charge(state, chain, slot, amount);
  }
}

/** The nonzero charges of a vector by key. Cash keys are left out: they are charged by the hour. */
export function chargesOf(layout: Layout, delta: ChargeVector): ReadonlyMap<Key, bigint> {
  const charges = new Map<Key, bigint>();
  for (let slot = 0; slot < layout.keys.length; slot++)
    if (delta[slot] !== 0) charges.set(layout.keys[slot] as Key, BigInt(delta[slot] as Amount));
  return charges;
}

/** A refusal for a reason other than quantities. */
export function refusal(state: QuotaState, code: Code, reason: string): Decision {
  return new LazyDecision({ allowed: false, code, reason, revision: state.revision });
}

function unclearRequest(state: QuotaState, group: Group, workload: Workload): Decision | null {
  for (let index = 0; index < workload.podSets.length; index++) {
    if (chargedCount(workload, index) === 0) continue;
    const plan = (workload.podSets[index] as PodSetCharge).shape.planFor(group.layout);
    if (plan.mustSpecify !== null) {
      return refusal(
        state,
        'MustSpecify',
        `group ${group.name} limits ${plan.mustSpecify}: every container must specify it`,
      );
    }
    if (state.policy.strictTypes && plan.mustType !== null) {
      return refusal(
        state,
        'TypeRequired',
        `group ${group.name} limits ${plan.mustType}: the workload must declare a type`,
      );
    }
  }
  return null;
}

function overQuota(state: QuotaState, chain: Chain, slot: number, need: Amount): Violation | null {
  const room = roomOf(state, chain, slot);
  if (need <= room) return null;
  const group = chain.first;
  const used = group.amounts.totalUsed(slot);
  return {
    group: group.name,
    key: group.layout.keys[slot] as Key,
    hard: BigInt(group.amounts.hard(slot)) - uncertainOf(group, group.layout.keys[slot] as Key),
    used: BigInt(used),
    requested: BigInt(need),
    short: BigInt(minus(need, room)),
  };
}

function cashSpent(group: Group, index: number, need: Amount, now: number): Violation | null {
  const budget = group.budgets[index] as Budget;
  const used = usedAt(budget, now);
  const hard = budget.hard - uncertainOf(group, CASH + budget.key);
  if (used < hard) return null;
  return { group: group.name, key: CASH + budget.key, hard, used, requested: BigInt(need), short: used - hard };
}

function denial(
  state: QuotaState,
  chain: Chain,
  workload: Workload,
  before: ChargeVector | null,
  violations: readonly Violation[],
  now: number,
): Decision {
  const group = chain.first;
  const isCash = violations.every(({ key }) => key.startsWith(CASH));
  const maxReplicas = maxReplicasFor(state, chain, workload, before, now);
  const freeAt = isCash ? budgetReturnsAt(group, violations, now) : roomReturnsAt(state, group, violations);
  const hints: Hints = { ...(maxReplicas === null ? {} : { maxReplicas }), ...(freeAt === null ? {} : { freeAt }) };
  return new LazyDecision({
    allowed: false,
    code: isCash ? 'CashExhausted' : 'QuotaExceeded',
    revision: state.revision,
    violations,
    hints,
    path: chain.groups.map(({ name }) => name),
  });
}

/** The largest number of replicas that would be admitted, for a workload with one pod set and charges of `before`. */
export function maxReplicasFor(
  state: QuotaState,
  chain: Chain,
  workload: Workload,
  before: ChargeVector | null,
  now: number,
): number | null {
  const [podSet] = workload.podSets;
  if (podSet === undefined || workload.podSets.length !== 1) return null;
  const group = chain.first;
  const { layout } = group;
  const pod = emptyChargeVector(layout);
  addPods(pod, layout, podSet, 1);
  let most = Infinity;
  for (let slot = 0; slot < pod.length; slot++) {
    const each = pod[slot] as Amount;
    if (each <= 0) continue;
    const own = before?.[slot] ?? 0;
    let limit = own;
    if (slot >= layout.keys.length) {
      const budget = group.budgets[slot - layout.keys.length] as Budget;
      if (usedAt(budget, now) < budget.hard) continue;
    } else {
      const room = roomOf(state, chain, slot);
      if (room > 0) limit = plus(own, room);
    }
    most = Math.min(most, quotientOf(limit, each));
  }
  const counted = layout.slots.get(workload.countKey);
  // The object count may have no room for the object itself.
  if (counted !== undefined && (before?.[counted] ?? 0) < 1 && roomOf(state, chain, counted) < 1) return 0;
  return most === Infinity ? null : most;
}
