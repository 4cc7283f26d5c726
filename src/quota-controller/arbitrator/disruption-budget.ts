import { selectsLabels, type LabelSelector } from '../../manifests/label-selector.js';
import type { KubeObject } from '../../kube/object.js';

export interface DisruptionBudget {
  readonly namespace: string;
  /** `namespace/name`. */
  readonly key: string;
  /** How many evictions the budget allows now. */
  readonly allowed: number;
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
}

interface BudgetStatus {
  readonly disruptionsAllowed?: number;
  readonly observedGeneration?: number;
}

/** Reads a PodDisruptionBudget. An empty selector selects all pods in policy/v1 and no pods in v1beta1. */
export function readDisruptionBudget(object: unknown, version: 'v1' | 'v1beta1'): DisruptionBudget | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.name === undefined) return null;
  const { namespace = '', name, generation = 0 } = metadata;
  const { disruptionsAllowed = 0, observedGeneration = generation } = (status ?? {}) as BudgetStatus;
  const selector = spec?.['selector'] as LabelSelector | undefined;
  const terms = Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0);
  const isSelective = selector !== undefined && (terms > 0 || version === 'v1');
  return {
    namespace,
    key: `${namespace}/${name}`,
    // Until the budget's controller has observed the change, the eviction API refuses all evictions.
    allowed: observedGeneration < generation ? 0 : disruptionsAllowed,
    selects: (labels) => isSelective && selectsLabels(selector, labels),
  };
}
