import { plus, type Amount } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import type { Budget } from '../state/budget.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { readPodSet, type Resources } from '../admission/demand.js';
import { listsOf, type Group } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import { groupOfPod, type Pod, type PodSpan } from '../state/pod.js';
import { POD } from '../state/request-shape.js';
import type { QuotaState } from '../state/state.js';
import { announceThreshold } from './threshold.js';
import type { Types } from '../amounts/type-family.js';
import { refKey, refProblem, type WorkloadRef } from '../state/workload.js';

/** Usage of a pod, from its scheduling on. */
export interface PodUse {
  readonly id: string;
  readonly workload: WorkloadRef;
  /** Name of the pod set in the workload; default the first. */
  readonly podSet?: string | undefined;
  /**
   * Group and amounts of the pod; required if they differ from its pod set, or if the workload is not charged any more.
   */
  readonly group?: string | undefined;
  readonly types?: Types | undefined;
  readonly requests?: Resources | undefined;
  readonly limits?: Resources | undefined;
}

/** Maximum length of a pod id. */
const MAX_ID = 512;

/**
 * Records that a pod was scheduled or resized at `since`. Events may be late, unordered or repeated. A future time
 * counts as now.
 */
export function startPod(state: QuotaState, use: PodUse, since: number): Decision {
  const problem =
    refProblem(use.workload, refKey(use.workload)) ??
    (use.id === '' || use.id.length > MAX_ID ? 'a pod needs an id of at most 512 characters' : null);
  if (problem !== null) return refusal(state, 'InvalidName', problem);
  if (!Number.isSafeInteger(since)) return refusal(state, 'InvalidTime', `invalid start of a pod: ${since}`);
  const span = spanOf(state, use, clamped(state, since, use.id));
  if ('allowed' in span) return span;
  const old = state.pods.get(use.id);
  if (old?.spans.some((known) => sameSpan(known, span)) === true) return accepted(state, [span.group]);
  const spans = [...(old?.spans ?? []).filter(({ at }) => at !== span.at), span].sort((a, b) => a.at - b.at);
  replacePod(state, use.id, old, {
    id: use.id,
    workload: refKey(use.workload),
    spans,
    end: old?.end ?? Infinity,
    ...(old?.isRetained === true ? { isRetained: true } : {}),
  });
  state.emit({ type: 'podStarted', group: span.group, subject: use.id });
  return accepted(state, [span.group]);
}

/** The end of a pod; see the command `podStopped`. */
export interface PodEnd {
  readonly id: string;
  readonly end: number;
  readonly group?: string | undefined;
  readonly uncertainUntil?: number | undefined;
  readonly retain?: boolean | undefined;
}

/** Records that a pod succeeded, failed or was deleted at `end`. */
export function stopPod(state: QuotaState, { id, end, group: told, uncertainUntil, retain }: PodEnd): Decision {
  if (id === '' || id.length > MAX_ID)
    return refusal(state, 'InvalidName', 'a pod needs an id of at most 512 characters');
  if (!Number.isSafeInteger(end)) return refusal(state, 'InvalidTime', `invalid end of a pod: ${end}`);
  const at = clamped(state, end, id);
  const old = state.pods.get(id);
  const group = old === undefined ? (told ?? '') : groupOfPod(old) || (told ?? '');
  if (group !== '' && state.group(group) === undefined)
    return refusal(state, 'GroupNotFound', `there is no group ${group.slice(0, 80)}`);
  // The earliest reported end counts, in any order of the events.
  if (old !== undefined && old.end <= at && (retain !== true || old.isRetained === true))
    return accepted(state, group === '' ? [] : [group]);
  replacePod(state, id, old, {
    id,
    workload: old?.workload ?? '',
    spans: old?.spans ?? [],
    end: Math.min(at, old?.end ?? Infinity),
    ...(group === '' ? {} : { group }),
    ...(retain === true ? { isRetained: true } : {}),
  });
  if (uncertainUntil !== undefined && old?.end === Infinity)
    addUncertain(state, old, at, clamped(state, uncertainUntil, id));
  if (retain !== true) forgetLater(state, id);
  state.emit({ type: 'podStopped', group, subject: id });
  return accepted(state, group === '' ? [] : [group]);
}

/** Keeps a stopped pod, whose object was deleted, only for late events. */
export function dropPod(state: QuotaState, id: string): Decision {
  const pod = state.pods.get(id);
  if (pod === undefined || pod.end === Infinity || pod.isRetained !== true) return accepted(state, []);
  state.revision++;
  const group = groupOfPod(pod);
  const found = group === '' ? undefined : state.group(group);
  if (found !== undefined) state.own(found);
  state.putPod(id, { ...pod, isRetained: false });
  forgetLater(state, id);
  return accepted(state, group === '' ? [] : [group]);
}

function forgetLater(state: QuotaState, id: string): void {
  state.timers.push({ at: state.now + state.policy.lateEventsMs, kind: 'podForgotten', subject: id, group: '' });
}

/** Adds the usage that a pod would have had from `from` to `until` to the uncertain usage of its group's budgets. */
function addUncertain(state: QuotaState, pod: Pod, from: number, until: number): void {
  const span = pod.spans.at(-1);
  const found = span === undefined ? null : lifeOf(state, span);
  if (span === undefined || found === null || until <= from) return;
  const group = state.own(found);
  for (const budget of group.budgets) budget.uncertain += BigInt(heldOf(span, budget.key)) * BigInt(until - from);
  state.groupChanged(group);
}

/** Forgets a stopped pod; later events about it are ignored. Its usage stays. */
export function forgetPod(state: QuotaState, id: string): void {
  const pod = state.pods.get(id);
  if (pod === undefined || pod.end === Infinity || pod.isRetained === true) return;
  state.revision++;
  // A stop that is repeated beside this makes a record without a group in place of the group's.
  const home = state.group(groupOfPod(pod));
  if (home !== undefined) state.own(home);
  state.putPod(id, null);
}

/** Charges the running pods of a workload to another group from now on. */
export function movePods(state: QuotaState, from: Group, to: Group, workload: string): void {
  const moved: Pod[] = [];
  from.pods.forEach((_, id) => {
    const pod = state.pods.get(id);
    if (pod?.workload === workload) moved.push(pod);
  });
  for (const pod of moved) {
    const last = pod.spans.at(-1);
    if (last === undefined) continue;
    const spans = [
      ...pod.spans.filter(({ at }) => at < state.now),
      { ...last, at: state.now, group: to.name, life: to.life },
    ];
    replacePod(state, pod.id, pod, { ...pod, spans });
  }
}

/** Counts the running pods of a group in a new budget, from its `since` on. */
export function countRunning(state: QuotaState, group: Group, budget: Budget): void {
  group.pods.forEach((_, id) => {
    const pod = state.pods.get(id);
    if (pod === undefined) return;
    pod.spans.forEach((span, index) => {
      if (span.group === group.name && span.life === group.life) consume(budget, span, endOf(pod, index), 1n);
    });
  });
}

/** Ends the usage of a group's pods, so that its budgets can return to the parent. */
export function stopAll(state: QuotaState, group: Group): void {
  const running: string[] = [];
  group.pods.forEach((_, id) => running.push(id));
  for (const id of running) stopPod(state, { id, end: state.now });
}

/** Amount of `key` that one pod of a span uses. */
export function heldOf(
  span: { readonly shape: PodSpan['shape']; readonly amounts: readonly Amount[] },
  key: Key,
): Amount {
  return span.shape
    .chargersOf(key)
    .reduce<Amount>((sum, need) => plus(sum, need === POD ? 1 : (span.amounts[need] as Amount)), 0);
}

function spanOf(state: QuotaState, use: PodUse, at: number): PodSpan | Decision {
  const key = refKey(use.workload);
  const entry = state.workloads.get(key);
  const groupName = use.group ?? entry?.group;
  const group = groupName === undefined ? undefined : state.group(groupName);
  if (groupName !== undefined && group === undefined)
    return refusal(state, 'GroupNotFound', `there is no group ${groupName}`);
  if (group === undefined)
    return refusal(state, 'WorkloadNotFound', `${key} is not charged: the event of its pod needs group and requests`);
  const place = { at, group: group.name, life: group.life };
  if (use.requests !== undefined || use.limits !== undefined) {
    const types = use.types ?? entry?.podSets[0]?.shape.types ?? {};
    const read = readPodSet(
      state.shapes,
      { count: 1, requests: use.requests, limits: use.limits, unspecified: [] },
      types,
    );
    if (!read.ok) return refusal(state, read.code, read.reason);
    return { ...place, shape: read.podSet.shape, amounts: read.podSet.amounts };
  }
  if (entry === undefined)
    return refusal(state, 'WorkloadNotFound', `${key} is not charged: the event of its pod needs requests`);
  const podSet = use.podSet === undefined ? entry.podSets[0] : entry.podSets.find(({ name }) => name === use.podSet);
  if (podSet === undefined) return refusal(state, 'PodSetNotFound', `${key} has no pods ${use.podSet ?? ''}`);
  return { ...place, shape: podSet.shape, amounts: podSet.amounts };
}

function sameSpan(a: PodSpan, b: PodSpan): boolean {
  return (
    a.at === b.at &&
    a.group === b.group &&
    a.life === b.life &&
    a.shape === b.shape &&
    a.amounts.every((amount, index) => amount === b.amounts[index])
  );
}

function clamped(state: QuotaState, at: number, id: string): number {
  if (at <= state.now) return at;
  state.emit({ type: 'clockSkew', group: '', subject: id, reason: `an event of ${at} was reported at ${state.now}` });
  return state.now;
}

function replacePod(state: QuotaState, id: string, old: Pod | undefined, pod: Pod): void {
  state.revision++;
  const touched = new Set<string>();
  if (old !== undefined) account(state, old, -1n, touched);
  account(state, pod, 1n, touched);
  for (const span of [...(old?.spans ?? []), ...pod.spans]) {
    const group = lifeOf(state, span);
    if (group === null) continue;
    const runs = pod.end === Infinity && pod.spans.at(-1)?.group === group.name;
    if (runs === group.pods.has(id)) continue;
    if (runs) listsOf(state.own(group)).pods.set(id, true);
    else listsOf(state.own(group)).pods.delete(id);
  }
  // The decision used the known state of the pod's old and new groups; a shared store refuses the commit if one of
  // them is outdated.
  for (const name of [old === undefined ? '' : groupOfPod(old), groupOfPod(pod)]) {
    const home = state.group(name);
    if (home !== undefined) state.own(home);
  }
  state.putPod(id, pod);
  for (const name of touched) {
    const group = state.group(name);
    if (group === undefined) continue;
    for (const budget of group.budgets) announceThreshold(state, group, budget);
    state.groupChanged(group);
  }
}

function account(state: QuotaState, pod: Pod, sign: bigint, touched: Set<string>): void {
  pod.spans.forEach((span, index) => {
    const found = lifeOf(state, span);
    if (found === null || found.budgets.length === 0) return;
    const group = state.own(found);
    for (const budget of group.budgets) consume(budget, span, endOf(pod, index), sign);
    touched.add(group.name);
  });
}

function consume(budget: Budget, span: PodSpan, end: number, sign: bigint): void {
  const held = BigInt(heldOf(span, budget.key)) * sign;
  const from = Math.max(span.at, budget.since);
  if (held === 0n || end <= from) return;
  if (end === Infinity) {
    budget.offset -= held * BigInt(from);
    budget.rate += held;
  } else {
    budget.offset += held * BigInt(end - from);
  }
}

function endOf(pod: Pod, index: number): number {
  return Math.min(pod.end, pod.spans[index + 1]?.at ?? Infinity);
}

function lifeOf(state: QuotaState, span: PodSpan): Group | null {
  const group = state.group(span.group);
  return group?.life === span.life ? group : null;
}

function accepted(state: QuotaState, path: readonly string[]): Decision {
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path });
}
