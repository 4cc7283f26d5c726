import type { Chain } from '../state/group.js';
import { chargesOf, commit, refusal, testChange } from '../admission/admission.js';
import { plus, type Amount } from '../../../manifests/amount.js';
import { allowed, denied, isOtherLife } from '../workloads/admit.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { readDemand, type Demand } from '../admission/demand.js';
import type { Key } from '../../../manifests/key.js';
import { roomOf } from '../admission/cohort.js';
import { movePods } from '../pods/pods.js';
import { release, settle } from '../admission/release.js';
import { reservationKey, type Candidate, type Reservation } from '../state/reservation.js';
import type { QuotaState } from '../state/state.js';
import { chargeOf, largest, chargeVectorOf, type ChargeVector } from '../admission/charge-vector.js';
import { refKey } from '../state/workload.js';

/** Maximum number of reservations per group; more means that confirmations are missing. */
export const MAX_RESERVATIONS = 1024;

/**
 * Tests a demand and reserves its amounts until it is confirmed, or for `ttlMs`: the first of two steps if the object
 * is created after the decision. `operation` names the reservation, so that a repetition makes no second one. Several
 * reservations of one workload reserve the largest, because only one of them becomes the object.
 */
export function reserve(state: QuotaState, demand: Demand, ttlMs: number, operation: string | undefined): Decision {
  const key = refKey(demand.workload);
  const deny = (decision: Decision): Decision => denied(state, key, demand.group, decision);
  const read = readDemand(state.shapes, demand);
  if (!read.ok) return deny(refusal(state, read.code, read.reason));
  if (!Number.isSafeInteger(ttlMs) || ttlMs <= 0)
    return deny(refusal(state, 'InvalidTime', `invalid duration of a reservation: ${ttlMs} ms`));
  const { workload } = read;
  if (workload.group === '')
    return new LazyDecision({
      allowed: true,
      code: 'NotManaged',
      reason: 'the workload names no group',
      revision: state.revision,
    });
  const found = state.group(workload.group);
  if (found === undefined)
    return deny(refusal(state, 'GroupNotFound', `there is no group ${workload.group.slice(0, 80)}`));
  const id = operation ?? `${key}#${state.revision + 1}`;
  const home = reservationKey(key, found.name);
  if (id.length > 512 || (state.operations.has(id) && state.operations.get(id) !== home)) {
    return deny(refusal(state, 'InvalidDemand', `operation ${id.slice(0, 80)} belongs to another workload`));
  }
  if (found.reserved.size >= MAX_RESERVATIONS && !found.reserved.has(home))
    return deny(
      refusal(state, 'TooManyReservations', `group ${found.name} already has ${MAX_RESERVATIONS} reservations`),
    );
  const entry = state.workloads.get(key);
  const others = (state.reservations.get(home)?.candidates ?? []).filter((other) => other.id !== id);
  const reserved = [
    workload,
    ...others.map((other) => other.workload),
    ...(entry?.group === found.name ? [entry] : []),
  ];
  const after = largest(reserved.map((each) => chargeVectorOf(found.layout, each))) ?? [];
  const before = chargeOf(state, found, key, entry);
  const fit = testChange(state, found, workload, before, after, state.now);
  if (fit.decision !== null) return deny(fit.decision);
  if (entry !== undefined && before !== null && isOtherLife(entry, workload.uid)) {
    const full = keyWithoutRoom(state, fit.chain, chargeVectorOf(found.layout, workload), before);
    if (full !== null)
      return deny(
        refusal(
          state,
          'QuotaExceeded',
          `exceeded quota: ${found.name}: ${full} has no room for ${key} in place of the earlier object of this name`,
        ),
      );
  }
  state.revision++;
  const group = state.own(found);
  const candidate: Candidate = { id, workload, expiresAt: state.now + ttlMs };
  commit(state, state.ownAll(fit.chain), fit.delta);
  state.putReservation(group, key, [...others, candidate]);
  state.timers.push({ at: candidate.expiresAt, kind: 'reservation', subject: id, group: group.name });
  state.emit({ type: 'reserved', group: group.name, subject: key, amounts: chargesOf(group.layout, fit.delta) });
  return allowed(state, fit.chain, fit.delta, workload, id);
}

/** Confirms a reservation when its object exists: the workload is charged for the admitted demand. */
export function confirm(state: QuotaState, id: string): Decision {
  const found = find(state, id);
  if (found === null) return refusal(state, 'ReservationNotFound', `there is no reservation ${id.slice(0, 80)}`);
  const { reservation, candidate } = found;
  const home = state.group(reservation.group);
  if (home === undefined) return refusal(state, 'GroupNotFound', `there is no group ${reservation.group}`);
  state.revision++;
  const group = state.own(home);
  const old = state.workloads.get(reservation.workload);
  const from = old !== undefined && old.group !== group.name ? state.group(old.group) : undefined;
  if (from !== undefined) {
    release(state, from, reservation.workload);
    movePods(state, from, group, reservation.workload);
  }
  const workload = old === undefined ? candidate.workload : { ...candidate.workload, heldReplicas: old.heldReplicas };
  const delta = settle(
    state,
    group,
    reservation.workload,
    workload,
    reservation.candidates.filter((other) => other !== candidate),
  );
  state.emit({
    type: 'confirmed',
    group: group.name,
    subject: reservation.workload,
    amounts: chargesOf(group.layout, delta),
  });
  return allowed(state, state.chainOf(group), delta, workload);
}

/**
 * Cancels a reservation whose object will not be created. With `expiresBy`, a reservation that expires later stays,
 * because the same operation was admitted again.
 */
export function cancel(state: QuotaState, id: string, expiresBy = Infinity): Decision {
  const known = find(state, id);
  const found = known !== null && known.candidate.expiresAt > expiresBy ? null : known;
  const home = found === null ? undefined : state.group(found.reservation.group);
  if (found === null || home === undefined)
    return refusal(state, 'ReservationNotFound', `there is no reservation ${id.slice(0, 80)}`);
  state.revision++;
  const group = state.own(home);
  const { workload, candidates } = found.reservation;
  const entry = state.workloads.get(workload);
  const delta = settle(
    state,
    group,
    workload,
    entry?.group === group.name ? entry : null,
    candidates.filter((other) => other !== found.candidate),
  );
  state.emit({ type: 'released', group: group.name, subject: workload, amounts: chargesOf(group.layout, delta) });
  return allowed(state, state.chainOf(group), delta, null);
}

/** Expires a reservation unless it was renewed, or the policy leaves its end to the owner of the engine. */
export function expire(state: QuotaState, id: string): void {
  if (!state.policy.expiresReservations) return;
  const found = find(state, id);
  if (found === null || found.candidate.expiresAt > state.now) return;
  state.emit({ type: 'reservationExpired', group: found.reservation.group, subject: found.reservation.workload });
  cancel(state, id);
}

/** A reservation that waits for its object. */
export interface OpenReservation {
  /** Its operation. */
  readonly id: string;
  /** Key by `refKey`. */
  readonly workload: string;
  readonly group: string;
  readonly uid: string;
  /** Version of the object before the admitted change; 0 for a creation. */
  readonly version: number;
  readonly expiresAt: number;
}

/** All reservations of a state. O(reservations). */
export function openReservations(state: QuotaState): readonly OpenReservation[] {
  const open: OpenReservation[] = [];
  state.reservations.forEach(({ workload, group, candidates }) => {
    for (const { id, expiresAt, workload: wanted } of candidates)
      open.push({ id, workload, group, uid: wanted.uid, version: wanted.version, expiresAt });
  });
  return open;
}

/**
 * A key without room for `alone` even after the charge of an earlier object of the same name is released; null for
 * none. The earlier charge may exceed the quota, because an observation may have added it after that object was
 * deleted.
 */
function keyWithoutRoom(state: QuotaState, chain: Chain, alone: ChargeVector, before: ChargeVector): Key | null {
  const { keys } = chain.first.layout;
  return (
    keys.find(
      (_, slot) =>
        (alone[slot] as Amount) > 0 &&
        plus(roomOf(state, chain, slot), before[slot] as Amount) < (alone[slot] as Amount),
    ) ?? null
  );
}

function find(
  state: QuotaState,
  id: string,
): { readonly reservation: Reservation; readonly candidate: Candidate } | null {
  const reservation = state.reservations.get(state.operations.get(id) ?? '');
  const candidate = reservation?.candidates.find((other) => other.id === id);
  return reservation === undefined || candidate === undefined ? null : { reservation, candidate };
}
