import type { KubeCondition } from './group-object.js';

/** A condition without its times. */
export type Finding = Pick<KubeCondition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * Conditions as they are to be written: each keeps its time until its status changes. `generation` of what they are
 * about, where that has one.
 */
export function conditionsAt(
  nowMs: number,
  findings: readonly Finding[],
  before: readonly KubeCondition[] | undefined,
  generation?: number,
): readonly KubeCondition[] {
  const at = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return findings.map((finding) => {
    const old = before?.find(({ type }) => type === finding.type);
    return {
      ...finding,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      lastTransitionTime: old?.status === finding.status ? old.lastTransitionTime : at,
    };
  });
}
