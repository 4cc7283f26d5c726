import { list, record, timestamp, type JsonRecord } from './json.js';

/** A condition in an object's status, in Kubernetes' form. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** A condition without its times. */
export type ConditionState = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The condition of a type; null if the status has none. */
export function conditionOf<T extends { readonly type: string }>(
  conditions: readonly T[] | undefined,
  type: string,
): T | null {
  return conditions?.find((condition) => condition.type === type) ?? null;
}

/** The condition of a type in a status from other writers; null if it has none. */
export function readCondition(conditions: unknown, type: string): JsonRecord | null {
  return (
    list(conditions)
      .map(record)
      .find((condition) => condition.type === type) ?? null
  );
}

/**
 * Conditions to write: each keeps its time until its status changes. `generation` is the generation of the described
 * object, if it has one.
 */
export function conditionsAt(
  nowMs: number,
  findings: readonly ConditionState[],
  before: readonly Condition[] | undefined,
  generation?: number,
): readonly Condition[] {
  return findings.map((finding) => {
    const old = conditionOf(before, finding.type);
    return {
      ...finding,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      lastTransitionTime: old?.status === finding.status ? old.lastTransitionTime : timestamp(nowMs),
    };
  });
}
