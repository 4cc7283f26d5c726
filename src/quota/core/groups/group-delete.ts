import { minus } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { consumedAt } from '../state/budget.js';
import { applyChildQuota } from './child-quota.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { hardOf } from '../state/group-hard.js';
import type { Group } from '../state/group.js';
import { endLoansOf, retryOverdueLoans } from '../loans/loans.js';
import { restructure } from '../admission/cohort.js';
import { stopAll } from '../pods/pods.js';
import { release } from '../admission/release.js';
import type { QuotaState } from '../state/state.js';
import { chargedCount } from '../state/workload.js';

/**
 * Deletes a leaf. Its quota returns to the parent, without the used part of its budgets. `force` releases its workloads
 * first.
 */
export function deleteGroup(state: QuotaState, name: string, force: boolean): Decision {
  const decision = tryDelete(state, name, force);
  if (!decision.allowed)
    state.emit({ type: 'denied', group: name.slice(0, 80), code: decision.code, reason: decision.message });
  return decision;
}

/** Marks a group as terminating: it admits no workloads and no children until its deletion. */
export function terminateGroup(state: QuotaState, name: string): Decision {
  const found = state.group(name);
  if (found === undefined) return refusal(state, 'GroupNotFound', `there is no group ${name.slice(0, 80)}`);
  if (!found.terminating) {
    state.revision++;
    const group = state.own(found);
    group.terminating = true;
    state.groupChanged(group);
    state.emit({ type: 'groupTerminating', group: name });
  }
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [name] });
}

function tryDelete(state: QuotaState, name: string, force: boolean): Decision {
  const found = state.group(name);
  if (found === undefined) return refusal(state, 'GroupNotFound', `there is no group ${name.slice(0, 80)}`);
  if (found.children.length > 0)
    return refusal(state, 'NotLeaf', `group ${name} has ${found.children.length} children`);
  if (!force && isUsed(state, found)) return refusal(state, 'HasWorkloads', `group ${name} has workloads`);
  state.revision++;
  endLoansOf(state, name);
  const group = state.own(found);
  const before = hardOf(group);
  empty(state, group);
  restructure(state, group, () => {
    group.mode = 'carved';
  });
  giveBack(state, group);
  state.remove(group);
  state.emit({ type: 'groupDeleted', group: name, before });
  if (group.parent !== '') retryOverdueLoans(state, group.parent);
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [name] });
}

function isUsed(state: QuotaState, group: Group): boolean {
  let used = group.reserved.size > 0 || group.pods.size > 0;
  group.workloads.forEach(state.workloads, (workload) => {
    used ||= workload.podSets.some((_, index) => chargedCount(workload, index) > 0);
  });
  return used;
}

function empty(state: QuotaState, group: Group): void {
  const keys = new Set<string>();
  group.workloads.forEach(state.workloads, (workload) => keys.add(workload.key));
  group.reserved.forEach((_, key) => keys.add(state.reservations.get(key)?.workload ?? ''));
  for (const key of keys) release(state, group, key);
  stopAll(state, group);
}

function giveBack(state: QuotaState, group: Group): void {
  const found = group.parent === '' ? undefined : state.group(group.parent);
  if (found === undefined) return;
  const parent = state.own(found);
  parent.children = parent.children.filter((name) => name !== group.name);
  const listed = group.budgets.filter((budget) => budget.listed);
  applyChildQuota(state, parent, {
    hard: new Map(
      parent.layout.keys.map((key) => [key, minus(0, group.amounts.hard(group.layout.slots.get(key) as number))]),
    ),
    cash: new Map(listed.map(({ key, hard }) => [key, -hard])),
  });
  for (const budget of parent.budgets) {
    const mine = group.budgets.find(({ key }) => key === budget.key);
    if (mine !== undefined) budget.offset += consumedAt(mine, state.now);
  }
  state.groupChanged(parent);
}
