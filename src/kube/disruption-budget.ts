import { selectsLabels, type LabelSelector } from '../manifests/label-selector.js';
import type { KubeObject } from './object.js';

export interface DisruptionBudget {
  readonly namespace: string;
  /** `namespace/name`. */
  readonly key: string;
  /** How many evictions the budget allows now. */
  readonly allowed: number;
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /** Names of pods that are being evicted, and that `allowed` has already been lowered for. */
  readonly disrupted: ReadonlySet<string>;
}

interface BudgetStatus {
  readonly disruptionsAllowed?: number;
  readonly observedGeneration?: number;
  readonly disruptedPods?: Readonly<Record<string, string>>;
}

/** Reads a PodDisruptionBudget. An empty selector selects all pods in policy/v1 and no pods in v1beta1. */
export function readDisruptionBudget(object: unknown, version: 'v1' | 'v1beta1'): DisruptionBudget | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.name === undefined) return null;
  const { namespace = '', name, generation = 0 } = metadata;
  const budget = (status ?? {}) as BudgetStatus;
  const { disruptionsAllowed = 0, observedGeneration = generation, disruptedPods = {} } = budget;
  const selector = spec?.['selector'] as LabelSelector | undefined;
  const terms = Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0);
  const isSelective = selector !== undefined && (terms > 0 || version === 'v1');
  return {
    namespace,
    key: `${namespace}/${name}`,
    // Until the budget's controller has observed the change, the eviction API refuses all evictions.
    allowed: observedGeneration < generation ? 0 : disruptionsAllowed,
    selects: (labels) => isSelective && selectsLabels(selector, labels),
    disrupted: new Set(Object.keys(disruptedPods)),
  };
}
