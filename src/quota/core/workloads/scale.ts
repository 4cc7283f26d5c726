import { MAX_QUANTITY, times } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { allowed, denied, place } from './admit.js';
import { test } from '../admission/admission.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import type { PodSetCharge } from '../state/request-shape.js';
import type { QuotaState } from '../state/state.js';
import { chargeOf } from '../admission/charge-vector.js';
import { refKey, type Workload, type WorkloadRef } from '../state/workload.js';

/** Charges a workload for another number of replicas, in its only pod set or in the named one. */
export function scale(
  state: QuotaState,
  ref: WorkloadRef,
  replicas: number,
  podSet: string | undefined,
  dryRun: boolean,
): Decision {
  const key = refKey(ref);
  const old = state.workloads.get(key);
  if (old === undefined) return notManaged(state, key);
  const scaled = scaledTo(state, old, replicas, podSet);
  return 'allowed' in scaled ? denied(state, key, old.group, scaled) : place(state, old, scaled, dryRun);
}

/**
 * Tests whether a workload could grow to an autoscaler's maximum. `advisory` charges nothing; `reserve` charges the
 * maximum from now on, independent of the replicas, until a maximum of 0 ends this.
 */
export function checkHpa(
  state: QuotaState,
  ref: WorkloadRef,
  maxReplicas: number,
  mode: 'advisory' | 'reserve',
  dryRun: boolean,
): Decision {
  const key = refKey(ref);
  const old = state.workloads.get(key);
  if (old === undefined) return notManaged(state, key);
  const scaled = scaledTo(state, old, maxReplicas, undefined);
  if ('allowed' in scaled) return denied(state, key, old.group, scaled);
  if (mode === 'reserve') return place(state, old, { ...old, heldReplicas: maxReplicas }, dryRun);
  const group = state.group(old.group);
  if (group === undefined) return refusal(state, 'GroupNotFound', `there is no group ${old.group}`);
  const fit = test(state, group, scaled, chargeOf(state, group, key, old), state.now);
  return fit.decision === null
    ? allowed(state, fit.chain, fit.delta, scaled)
    : denied(state, key, group.name, fit.decision);
}

function scaledTo(
  state: QuotaState,
  workload: Workload,
  replicas: number,
  podSet: string | undefined,
): Workload | Decision {
  if (!Number.isSafeInteger(replicas) || replicas < 0) return refusal(state, 'InvalidCount', `${replicas} replicas`);
  const index =
    podSet === undefined
      ? workload.podSets.length === 1
        ? 0
        : -1
      : workload.podSets.findIndex(({ name }) => name === podSet);
  const found = workload.podSets[index];
  if (found === undefined)
    return refusal(
      state,
      'PodSetNotFound',
      podSet === undefined
        ? `${workload.key} has several pod sets: name one of them`
        : `${workload.key} has no pod set ${podSet.slice(0, 80)}`,
    );
  if (found.amounts.some((amount) => times(amount, replicas) > MAX_QUANTITY))
    return refusal(state, 'QuantityTooLarge', `the sum of ${replicas} pods exceeds 2^63-1`);
  const scaled: PodSetCharge = { ...found, count: replicas };
  return { ...workload, podSets: workload.podSets.map((other, at) => (at === index ? scaled : other)) };
}

function notManaged(state: QuotaState, key: string): Decision {
  return new LazyDecision({
    allowed: true,
    code: 'NotManaged',
    reason: `${key.slice(0, 320)} is not charged`,
    revision: state.revision,
  });
}
