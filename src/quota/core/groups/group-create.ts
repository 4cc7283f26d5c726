import { type Amount } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { newBudget } from '../state/budget.js';
import { declareLoans } from '../loans/declare-loans.js';
import { NO_GRANTS } from '../state/declared-grant.js';
import { declareGrants } from '../loans/grants.js';
import { applyChildQuota, childQuotaViolations, missingParentKey, childQuotaChange } from './child-quota.js';
import { LazyDecision, type Decision, type Violation, type Warning } from '../admission/decision.js';
import { hardOf } from '../state/group-hard.js';
import { nameProblem, readSpec, unreachableKeys, type GroupSpec, type ReadSpec } from '../state/group-spec.js';
import { bareGroup, type Group } from '../state/group.js';
import { CASH, type Key } from '../../../manifests/key.js';
import type { Layout } from '../amounts/layout.js';
import { overdraft, restructure } from '../admission/cohort.js';
import type { Code } from '../amounts/refusal.js';
import type { QuotaState } from '../state/state.js';

/** Creates a group: a root, or a child whose quota is taken from its parent. */
export function createGroup(state: QuotaState, spec: GroupSpec): Decision {
  const decision = tryCreate(state, spec);
  if (!decision.allowed)
    state.emit({ type: 'denied', group: spec.name.slice(0, 80), code: decision.code, reason: decision.message });
  return decision;
}

function tryCreate(state: QuotaState, spec: GroupSpec): Decision {
  const problem = nameProblem(spec.name);
  if (problem !== null) return refusal(state, 'InvalidName', problem);
  if (state.group(spec.name) !== undefined) return refusal(state, 'AlreadyExists', `group ${spec.name} already exists`);
  const read = readSpec(spec);
  if (!read.ok) return refusal(state, read.code, read.reason);
  const parentName = spec.parent ?? '';
  if (parentName === '') return created(state, insert(state, spec.name, null, read), read);
  const parent = state.group(parentName);
  if (parent === undefined) return refusal(state, 'ParentNotFound', `there is no group ${parentName.slice(0, 80)}`);
  if (parent.terminating) return refusal(state, 'ParentTerminating', `group ${parent.name} is being deleted`);
  if (parent.depth + 1 >= state.policy.maxDepth)
    return refusal(state, 'TooDeep', `groups are nested at most ${state.policy.maxDepth} deep`);
  const refused = parentRefusal(state, parent, read, null);
  if (refused !== null) return refused;
  const lentOut =
    parent.mode === 'elastic' ||
    read.mode === 'elastic' ||
    parent.layout.keys.some((_, slot) => parent.amounts.spilled(slot) !== 0)
      ? newOverdraft(state, parent, (fork) => insert(fork, spec.name, fork.own(parent), read))
      : [];
  if (lentOut.length > 0) return parentExceeded(state, parent, lentOut);
  return created(state, insert(state, spec.name, state.own(parent), read), read);
}

function insert(state: QuotaState, name: string, parent: Group | null, spec: ReadSpec): Group {
  state.revision++;
  // Several engines may create groups; the time makes their numbers differ.
  state.lives = Math.max(state.lives + 1, state.now);
  const layout = layoutOf(state, spec);
  const group = bareGroup(
    name,
    state.lives,
    parent?.name ?? '',
    parent === null ? 0 : parent.depth + 1,
    layout,
    state.blocks,
  );
  setLimits(group, spec);
  group.budgets = layout.cashKeys.map((key) => newBudget(key, spec.cash.get(key) ?? 0n, -Infinity));
  state.add(group);
  if (parent !== null) {
    parent.children = [...parent.children, name];
    applyChildQuota(state, parent, childQuotaChange(parent, spec, null));
  }
  restructure(state, group, () => {
    group.mode = spec.mode;
    setHard(group, spec);
  });
  state.groupChanged(group);
  return group;
}

/** The layout with the keys of a specification. */
export function layoutOf(state: QuotaState, spec: ReadSpec): Layout {
  return state.layouts.layoutOf([...spec.hard.keys(), ...[...spec.cash.keys()].map((key) => CASH + key)]);
}

/** Sets the limits on borrowing and lending, by key. */
export function setLimits(group: Group, spec: Pick<ReadSpec, 'borrow' | 'lend'>): void {
  group.layout.keys.forEach((key, slot) =>
    group.amounts.setLimits(slot, spec.lend.get(key) ?? Infinity, spec.borrow.get(key) ?? Infinity),
  );
}

/** Sets the quota, by key. */
export function setHard(group: Group, spec: Pick<ReadSpec, 'hard'>): void {
  group.layout.keys.forEach((key, slot) => group.amounts.setHard(slot, spec.hard.get(key) as Amount));
}

/** Keys whose lent amounts a change of groups would take back; computed on a fork. */
function newOverdraft(state: QuotaState, at: Group, change: (fork: QuotaState) => void): readonly Violation[] {
  const fork = state.fork();
  change(fork);
  const changed = fork.group(at.name);
  return at.layout.keys.flatMap((key, slot): Violation[] => {
    const before = overdraft(state, at, key);
    const after = changed === undefined ? before : overdraft(fork, changed, key);
    if (after <= 0 || after <= before) return [];
    const used = BigInt(at.amounts.selfUsed(slot)) + BigInt(at.amounts.childSum(slot));
    const short = BigInt(after) - (before > 0 ? BigInt(before) : 0n);
    return [{ group: at.name, key, hard: BigInt(at.amounts.hard(slot)), used, requested: short, short }];
  });
}

/** The refusal of a specification that lacks a limit of its parent or wants more than it has left; null for none. */
export function parentRefusal(state: QuotaState, parent: Group, spec: ReadSpec, old: Group | null): Decision | null {
  const missing = missingParentKey(parent, spec);
  if (missing !== null)
    return refusal(
      state,
      'MissingParentKey',
      `group ${parent.name} limits ${missing}, so its children must limit it too`,
    );
  const violations = childQuotaViolations(parent, childQuotaChange(parent, spec, old), state.now);
  return violations.length > 0 ? parentExceeded(state, parent, violations) : null;
}

/** The refusal for a parent without enough quota. */
function parentExceeded(state: QuotaState, parent: Group, violations: readonly Violation[]): Decision {
  return new LazyDecision({
    allowed: false,
    code: 'ParentExceeded',
    revision: state.revision,
    violations,
    path: [parent.name],
  });
}

/** Warnings about limits that cannot be reached. */
export function unreachable(spec: ReadSpec): readonly Warning[] {
  return unreachableKeys(spec.hard).map((key: Key) => ({
    code: 'Unreachable' as const,
    key,
    reason: `${key} exceeds the general key of the resource`,
  }));
}

function created(state: QuotaState, group: Group, spec: ReadSpec): Decision {
  const code: Code = 'OK';
  state.emit({ type: 'groupCreated', group: group.name, after: hardOf(group) });
  declareGrants(state, group, spec.grants ?? NO_GRANTS);
  const refused = spec.loans === undefined ? null : declareLoans(state, group.name, spec.loans);
  return new LazyDecision({
    allowed: true,
    code,
    revision: state.revision,
    warnings: [...unreachable(spec), ...loanRefused(refused)],
    path: [group.name],
  });
}

/** A warning about a refused loan. */
export function loanRefused(refused: Decision | null): readonly Warning[] {
  return refused === null ? [] : [{ code: 'LoanRefused', key: '', reason: refused.message }];
}
