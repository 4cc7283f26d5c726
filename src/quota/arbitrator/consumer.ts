import { of, total, type Quantities } from './quantities.js';

/** What a consumer of the cluster, a namespace, may have at most and has in any case. */
export interface ConsumerSpec {
  readonly name: string;
  /** A resource that is not named has no limit. */
  readonly hard?: Quantities | undefined;
  /** Kept for it even while it does not ask, unless the policy lends it. Nothing of what is not named. */
  readonly reserved?: Quantities | undefined;
  /** Its part where there is not enough for all: twice the weight, twice the share. 1 without. */
  readonly weight?: number | undefined;
  /** The area that it is part of: another consumer, which gets a share of the cluster for all of its own. */
  readonly parent?: string | undefined;
  /** Gets what it asks for before all others: kube-system. */
  readonly isSystem?: boolean | undefined;
}

/** Why a specification is refused. */
export type ConsumerProblem =
  | {
      readonly code: 'ReservedAboveHard' | 'HardAboveQuota' | 'ReservedAboveCluster';
      readonly resource: string;
      readonly amount: number;
      readonly limit: number;
    }
  | { readonly code: 'InvalidWeight' | 'InvalidQuantity'; readonly resource: string; readonly amount: number };

/** What a specification has to agree with. */
export interface ConsumerSurroundings {
  readonly capacity: Quantities;
  /** All others of the cluster. */
  readonly others: readonly ConsumerSpec[];
  /** Of the namespace's ResourceQuota, where there is one. */
  readonly quotaHard?: Quantities | undefined;
}

/**
 * Everything that is wrong with a specification: what is reserved is within what it may have (K1), that within the
 * quota of its namespace (K2), and what is reserved for all within the cluster (K3). The cluster may shrink later; then
 * `deserved` scales what is reserved.
 */
export function consumerProblems(
  spec: ConsumerSpec,
  { capacity, others, quotaHard }: ConsumerSurroundings,
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
    // No limit of its own is none beyond the quota's: the quota holds anyway.
    if (amount !== Infinity && amount > limit) problems.push({ code: 'HardAboveQuota', resource, amount, limit });
  }
  const reserved = total([...others, spec].map((each) => each.reserved ?? new Map<string, number>()));
  for (const [resource, mine] of spec.reserved ?? []) {
    const [amount, limit] = [of(reserved, resource), of(capacity, resource)];
    if (mine > 0 && amount > limit) problems.push({ code: 'ReservedAboveCluster', resource, amount, limit });
  }
  return problems;
}
