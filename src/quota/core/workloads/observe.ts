import { refusal } from '../admission/admission.js';
import { isSame } from './admit.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { readDemand, type Demand } from '../admission/demand.js';
import { movePods } from '../pods/pods.js';
import { settle } from '../admission/release.js';
import { reservationKey, type Candidate } from '../state/reservation.js';
import type { QuotaState } from '../state/state.js';
import { refKey, refProblem, type Workload, type WorkloadRef } from '../state/workload.js';

/** An observed state of an object. */
export interface Observation {
  /** With uid and version. */
  readonly workload: WorkloadRef;
  /** The group to which it last belonged: the charge is looked up there first. */
  readonly group: string;
  /** The demand; null for a deleted object. */
  readonly demand: Demand | null;
}

/**
 * Updates the charge of a workload to its observed object. An existing object is charged even beyond the quota, because
 * it may have bypassed admission; a deleted one is released. Observations may be late or repeated: one that is older
 * than the charge changes nothing.
 *
 * Any later version of the object settles a reservation that was made for an earlier version: either it is the admitted
 * change, or that change can no longer follow.
 */
export function observe(state: QuotaState, observation: Observation): Decision {
  const { workload: ref, demand } = observation;
  const key = refKey(ref);
  const uid = ref.uid ?? '';
  const problem = refProblem(ref, key) ?? (uid === '' ? `${key} was observed without a uid` : null);
  if (problem !== null) return refusal(state, 'InvalidName', problem);
  const old = state.workloads.get(key);
  return demand === null ? observeDeletion(state, key, uid, old) : observeObject(state, key, uid, old, demand);
}

function observeObject(
  state: QuotaState,
  key: string,
  uid: string,
  old: Workload | undefined,
  demand: Demand,
): Decision {
  const read = readDemand(state.shapes, demand);
  if (!read.ok) return refusal(state, read.code, read.reason);
  const home = state.group(read.workload.group);
  if (home === undefined)
    return refusal(state, 'GroupNotFound', `there is no group ${read.workload.group.slice(0, 80)}`);
  if (read.workload.key !== key || read.workload.uid !== uid)
    return refusal(state, 'InvalidDemand', `the demand of ${key} belongs to another object`);
  const { version } = read.workload;
  if (old !== undefined && version < old.version) return answer(state, []);
  const workload = old?.uid === uid ? { ...read.workload, heldReplicas: old.heldReplicas } : read.workload;
  const isSettled = (candidate: Candidate): boolean =>
    candidate.workload.uid === uid && candidate.workload.version < version;
  const waits = (state.reservedIn.get(key) ?? []).some((name) => candidatesIn(state, key, name).some(isSettled));
  if (old !== undefined && isSame(old, workload) && !waits) return answer(state, [home.name]);
  state.revision++;
  for (const name of elsewhere(state, key, home.name, old)) {
    const from = state.group(name);
    if (from !== undefined)
      settle(
        state,
        state.own(from),
        key,
        null,
        candidatesIn(state, key, name).filter((candidate) => !isSettled(candidate)),
      );
  }
  const group = state.own(home);
  const from = old === undefined || old.group === home.name ? undefined : state.group(old.group);
  if (from !== undefined) movePods(state, from, group, key);
  settle(
    state,
    group,
    key,
    workload,
    candidatesIn(state, key, home.name).filter((candidate) => !isSettled(candidate)),
  );
  state.emit({ type: 'confirmed', group: home.name, subject: key });
  return answer(state, [home.name]);
}

function observeDeletion(state: QuotaState, key: string, uid: string, old: Workload | undefined): Decision {
  const isLeft = ({ workload }: Candidate): boolean => workload.uid !== uid;
  const mine = old?.uid === uid ? old : undefined;
  const names = [...new Set([...(mine === undefined ? [] : [mine.group]), ...(state.reservedIn.get(key) ?? [])])];
  const touched = names.filter((name) => name === mine?.group || !candidatesIn(state, key, name).every(isLeft));
  if (touched.length === 0)
    return new LazyDecision({
      allowed: true,
      code: 'NotManaged',
      reason: `${key} is not charged`,
      revision: state.revision,
    });
  state.revision++;
  for (const name of touched) {
    const group = state.group(name);
    if (group === undefined) continue;
    const entry = old !== undefined && mine === undefined && old.group === name ? old : null;
    settle(state, state.own(group), key, entry, candidatesIn(state, key, name).filter(isLeft));
    state.emit({ type: 'released', group: name, subject: key });
  }
  return answer(state, touched);
}

/** Other groups with a charge or reservation of the workload. */
function elsewhere(state: QuotaState, key: string, home: string, old: Workload | undefined): readonly string[] {
  const names = new Set([...(state.reservedIn.get(key) ?? []), ...(old === undefined ? [] : [old.group])]);
  names.delete(home);
  return [...names];
}

function candidatesIn(state: QuotaState, key: string, group: string): readonly Candidate[] {
  return state.reservations.get(reservationKey(key, group))?.candidates ?? [];
}

function answer(state: QuotaState, path: readonly string[]): Decision {
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path });
}
