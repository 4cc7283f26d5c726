import { hasLabels, labelOf, meets, type LabelRequirement } from './label-selector.js';

/** All of the requirements have to hold. */
export interface SelectorTerm {
  readonly labels: readonly LabelRequirement[];
  /** Only `metadata.name` exists as a field of nodes. */
  readonly fields: readonly LabelRequirement[];
}

/** Where a pod may run: every label of `labels`, and one of the `terms` unless there are none. */
export interface NodeSelector {
  /** `spec.nodeSelector`. */
  readonly labels: Readonly<Record<string, string>>;
  /** `requiredDuringSchedulingIgnoredDuringExecution` of the node affinity; null where the pod has none. */
  readonly terms: readonly SelectorTerm[] | null;
}

export const ANY_NODE: NodeSelector = { labels: {}, terms: null };

const NAME_FIELD = 'metadata.name';

/**
 * Whether a node with this name and these labels is one of those that the selector allows, by the scheduler's rules.
 */
export function selects(selector: NodeSelector, name: string, labels: Readonly<Record<string, string>>): boolean {
  if (!hasLabels(labels, selector.labels)) return false;
  if (selector.terms === null) return true;
  return selector.terms.some((term) => {
    // A term that says nothing matches no node: that is Kubernetes' rule.
    if (term.labels.length === 0 && term.fields.length === 0) return false;
    const meetsField = (field: LabelRequirement) => field.key === NAME_FIELD && meets(field, name);
    return term.labels.every((label) => meets(label, labelOf(labels, label.key))) && term.fields.every(meetsField);
  });
}

/** A text that is equal for selectors that say the same in the same order; empty for one that allows every node. */
export function selectorKey(selector: NodeSelector): string {
  const labels = Object.entries(selector.labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return labels.length === 0 && selector.terms === null ? '' : JSON.stringify([labels, selector.terms]);
}
