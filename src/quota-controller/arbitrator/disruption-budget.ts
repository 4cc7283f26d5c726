import { selectsLabels, type LabelSelector } from '../../kube/label-selector.js';
import type { KubeObject } from '../object.js';

/** A PodDisruptionBudget. */
export interface DisruptionBudget {
  readonly namespace: string;
  /** Namespace and name. */
  readonly key: string;
  /** How many pods it lets go now. */
  readonly allowed: number;
  readonly guards: (labels: Readonly<Record<string, string>>) => boolean;
}

interface BudgetStatus {
  readonly disruptionsAllowed?: number;
  readonly observedGeneration?: number;
}

/**
 * Reads a budget of policy/v1 or v1beta1: an empty selector stands for all pods in the one and for none in the other.
 */
export function readDisruptionBudget(object: unknown, version: 'v1' | 'v1beta1'): DisruptionBudget | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.name === undefined) return null;
  const { namespace = '', name, generation = 0 } = metadata;
  const { disruptionsAllowed = 0, observedGeneration = generation } = (status ?? {}) as BudgetStatus;
  const selector = spec?.['selector'] as LabelSelector | undefined;
  const terms = Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0);
  const selectsAny = selector !== undefined && (terms > 0 || version === 'v1');
  return {
    namespace,
    key: `${namespace}/${name}`,
    // Not counted since it was changed: the API refuses everything until it is.
    allowed: observedGeneration < generation ? 0 : disruptionsAllowed,
    guards: (labels) => selectsAny && selectsLabels(selector, labels),
  };
}
