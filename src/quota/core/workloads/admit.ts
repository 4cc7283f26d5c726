import { minus } from '../../../manifests/amount.js';
import { chargesOf, commit, refusal, test, type FitResult } from '../admission/admission.js';
import { AllowedDecision } from '../admission/allowed.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { readDemand, type Demand } from '../admission/demand.js';
import type { Chain, Group } from '../state/group.js';
import { movePods } from '../pods/pods.js';
import { release } from '../admission/release.js';
import type { QuotaState } from '../state/state.js';
import { chargeOf, chargeVectorOf, type ChargeVector } from '../admission/charge-vector.js';
import { chargedCount, refKey, refOfKey, type Workload, type WorkloadRef } from '../state/workload.js';

/**
 * Admits a workload as a whole or not at all, and charges the difference to its present charge. Increases are charged
 * before decreases are released; a workload that changes its group is first charged to the new group in full.
 */
export function admit(state: QuotaState, demand: Demand, dryRun: boolean): Decision {
  const read = readDemand(state.shapes, demand);
  if (!read.ok) return denied(state, refKey(demand.workload), demand.group, refusal(state, read.code, read.reason));
  const old = state.workloads.get(read.workload.key);
  const held = old === undefined || isOtherLife(old, read.workload.uid) ? 0 : old.heldReplicas;
  const workload = held === 0 ? read.workload : { ...read.workload, heldReplicas: held };
  if (workload.group === '') return unmanaged(state, old, workload, dryRun);
  return place(state, old, workload, dryRun);
}

/** Tests a workload, and charges it to its group if it fits. */
export function place(state: QuotaState, old: Workload | undefined, workload: Workload, dryRun: boolean): Decision {
  const group = state.group(workload.group);
  if (group === undefined) {
    return denied(
      state,
      workload.key,
      workload.group,
      refusal(state, 'GroupNotFound', `there is no group ${workload.group.slice(0, 80)}`),
    );
  }
  const fit = test(state, group, workload, chargeOf(state, group, workload.key, old), state.now);
  if (fit.decision !== null) return denied(state, workload.key, group.name, fit.decision);
  if (!dryRun && (old === undefined || !isSame(old, workload) || state.reservedIn.has(workload.key)))
    put(state, group, old, workload, fit);
  return allowed(state, fit.chain, fit.delta, workload);
}

/** Whether two entries of one object charge the same. */
export function isSame(a: Workload, b: Workload): boolean {
  return (
    a.group === b.group &&
    a.uid === b.uid &&
    a.countKey === b.countKey &&
    a.heldReplicas === b.heldReplicas &&
    (a.podSets === b.podSets || samePodSets(a, b))
  );
}

function samePodSets(a: Workload, b: Workload): boolean {
  return (
    a.podSets.length === b.podSets.length &&
    a.podSets.every((podSet, index) => {
      const other = b.podSets[index];
      return (
        other !== undefined &&
        podSet.name === other.name &&
        podSet.count === other.count &&
        podSet.shape === other.shape &&
        podSet.amounts.every((amount, need) => amount === other.amounts[need])
      );
    })
  );
}

/**
 * Releases the charge of a workload. Does nothing for a workload without a charge, or if another object has its name
 * now.
 */
export function releaseWorkload(state: QuotaState, ref: WorkloadRef): Decision {
  const key = refKey(ref);
  const entry = state.workloads.get(key);
  const groups = new Set([...(state.reservedIn.get(key) ?? []), ...(entry === undefined ? [] : [entry.group])]);
  if (groups.size === 0 || (entry !== undefined && isOtherLife(entry, ref.uid ?? ''))) {
    return new LazyDecision({
      allowed: true,
      code: 'NotManaged',
      reason: `${key} is not charged`,
      revision: state.revision,
    });
  }
  const found = entry === undefined ? undefined : state.group(entry.group);
  for (const name of groups) {
    const group = state.group(name);
    if (group !== undefined) release(state, group, key);
  }
  return new LazyDecision({
    allowed: true,
    code: 'OK',
    revision: state.revision,
    path: [...groups],
    ...(found === undefined || entry === undefined ? {} : { charged: () => releasedBy(found, entry) }),
  });
}

/** The decision that charges `delta` for `workload`; null for a change that releases only. */
export function allowed(
  state: QuotaState,
  chain: Chain,
  delta: ChargeVector,
  workload: Workload | null,
  reservation?: string,
): Decision {
  return new AllowedDecision(state.revision, chain, delta, workload, reservation);
}

/** Emits a refusal as an event and returns it. */
export function denied(state: QuotaState, subject: string, group: string, decision: Decision): Decision {
  if (state.onEvent !== null) {
    state.emit({
      type: 'denied',
      group: group.slice(0, 80),
      subject: subject.slice(0, 320),
      code: decision.code,
      reason: decision.message,
    });
  }
  return decision;
}

function put(
  state: QuotaState,
  found: Group,
  old: Workload | undefined,
  workload: Workload,
  { delta, chain }: FitResult,
): void {
  state.revision++;
  const group = state.own(found);
  const holders = state.reservedIn.get(workload.key);
  // The test included the reservation in this group; the entry replaces it.
  if (holders?.includes(group.name) === true) state.putReservation(group, workload.key, []);
  const from = old !== undefined && old.group !== group.name ? state.group(old.group) : undefined;
  commit(state, state.ownAll(chain), delta);
  if (state.onEvent !== null)
    state.emit({ type: 'admitted', group: group.name, subject: workload.key, amounts: chargesOf(group.layout, delta) });
  if (from !== undefined) {
    release(state, from, workload.key);
    movePods(state, from, group, workload.key);
  }
  state.putWorkload(group, workload, from === undefined ? (old ?? null) : null);
}

/** A workload without a group is not charged; but a charged workload cannot drop its charge by removing its label. */
function unmanaged(state: QuotaState, old: Workload | undefined, workload: Workload, dryRun: boolean): Decision {
  if (
    old !== undefined &&
    !isOtherLife(old, workload.uid) &&
    old.podSets.some((_, index) => chargedCount(old, index) > 0)
  ) {
    return denied(
      state,
      workload.key,
      old.group,
      refusal(
        state,
        'LabelRemoved',
        `${workload.key} is charged to group ${old.group}: it cannot leave the group while it runs`,
      ),
    );
  }
  if (old !== undefined && !dryRun) releaseWorkload(state, { ...refOfKey(workload.key), uid: old.uid });
  return new LazyDecision({
    allowed: true,
    code: 'NotManaged',
    reason: 'the workload names no group',
    revision: state.revision,
  });
}

/** Whether an entry belongs to an earlier object of the same name. */
export function isOtherLife(old: Workload, uid: string): boolean {
  return old.uid !== '' && uid !== '' && old.uid !== uid;
}

function releasedBy(group: Group, entry: Workload): ReturnType<typeof chargesOf> {
  return chargesOf(
    group.layout,
    chargeVectorOf(group.layout, entry).map((amount) => minus(0, amount)),
  );
}
