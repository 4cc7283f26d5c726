import { of, total, type Quantities } from '../../manifests/quantities.js';
import { limitedResource } from './limit-resource.js';
import { isStorage } from './storage-resource.js';

/** Limits and reservations of a consumer, which is a namespace. */
export interface ConsumerSpec {
  readonly name: string;
  /** Upper limits; a missing resource has no limit. */
  readonly hard?: Quantities | undefined;
  /** Amounts kept for the consumer even without requests, unless the policy lends them; 0 for a missing resource. */
  readonly reserved?: Quantities | undefined;
  /** Weight of the fair share: twice the weight gets twice the share. Default 1. */
  readonly weight?: number | undefined;
  /** The area of the consumer: another consumer, whose fair share is divided among its members. */
  readonly parent?: string | undefined;
  /** Served before all other consumers, as kube-system. */
  readonly isSystem?: boolean | undefined;
}

/** Why a specification is rejected. */
export type ConsumerProblem =
  | {
      readonly code: 'ReservedAboveHard' | 'HardAboveQuota' | 'ReservedAboveCluster';
      readonly resource: string;
      readonly amount: number;
      readonly limit: number;
    }
  | { readonly code: 'InvalidWeight' | 'InvalidQuantity'; readonly resource: string; readonly amount: number };

/** Context in which a specification is validated. */
export interface ConsumerContext {
  readonly capacity: Quantities;
  /** All other consumers of the cluster. */
  readonly others: readonly ConsumerSpec[];
  /** Hard limits of the namespace's ResourceQuota; undefined without one. */
  readonly quotaHard?: Quantities | undefined;
}

/**
 * Validates a specification: its reservation is within `hard` (K1), `hard` is within the quota of its namespace (K2),
 * and all reservations together are within the cluster (K3). If the cluster shrinks later, the reservations are scaled
 * down.
 */
export function consumerProblems(
  spec: ConsumerSpec,
  { capacity, others, quotaHard }: ConsumerContext,
): readonly ConsumerProblem[] {
  const problems: ConsumerProblem[] = [];
  const weight = spec.weight ?? 1;
  if (!(weight > 0 && Number.isFinite(weight))) problems.push({ code: 'InvalidWeight', resource: '', amount: weight });
  for (const [resource, amount] of [...(spec.hard ?? []), ...(spec.reserved ?? [])]) {
    if (!Number.isSafeInteger(amount) || amount < 0) problems.push({ code: 'InvalidQuantity', resource, amount });
  }
  for (const [resource, amount] of spec.reserved ?? []) {
    const limit = spec.hard?.get(resource) ?? Infinity;
    if (amount > limit) problems.push({ code: 'ReservedAboveHard', resource, amount, limit });
  }
  for (const [resource, limit] of quotaHard ?? []) {
    const amount = spec.hard?.get(resource) ?? Infinity;
    // A missing limit is not an error: the quota applies to the pods in any case.
    if (amount !== Infinity && amount > limit) problems.push({ code: 'HardAboveQuota', resource, amount, limit });
  }
  const reserved = total([...others, spec].map((each) => each.reserved ?? new Map<string, number>()));
  for (const [resource, mine] of spec.reserved ?? []) {
    const limited = limitedResource(resource);
    const limit = capacity.get(resource) ?? (isStorage(resource) ? Infinity : of(capacity, limited ?? ''));
    const amount = of(reserved, resource);
    if (mine > 0 && amount > limit) problems.push({ code: 'ReservedAboveCluster', resource, amount, limit });
  }
  return problems;
}
