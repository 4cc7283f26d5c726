import { hasLabels, labelOf, meets, type LabelRequirement } from './label-selector.js';

/** All requirements must hold. */
export interface SelectorTerm {
  readonly labels: readonly LabelRequirement[];
  /** Nodes have only the field `metadata.name`. */
  readonly fields: readonly LabelRequirement[];
}

/** The nodes on which a pod may run: with every label of `labels`, and matching one of the `terms` if there are any. */
export interface NodeSelector {
  /** `spec.nodeSelector`. */
  readonly labels: Readonly<Record<string, string>>;
  /** `requiredDuringSchedulingIgnoredDuringExecution` of the node affinity; null without it. */
  readonly terms: readonly SelectorTerm[] | null;
}

export const ANY_NODE: NodeSelector = { labels: {}, terms: null };

const NAME_FIELD = 'metadata.name';

/** Whether the selector allows a node with this name and these labels, by the scheduler's rules. */
export function selects(selector: NodeSelector, name: string, labels: Readonly<Record<string, string>>): boolean {
  if (!hasLabels(labels, selector.labels)) return false;
  if (selector.terms === null) return true;
  return selector.terms.some((term) => {
    // Kubernetes' rule: an empty term matches no node.
    if (term.labels.length === 0 && term.fields.length === 0) return false;
    const meetsField = (field: LabelRequirement) => field.key === NAME_FIELD && meets(field, name);
    return term.labels.every((label) => meets(label, labelOf(labels, label.key))) && term.fields.every(meetsField);
  });
}

/** A text that is equal for selectors with the same content in the same order; empty for one that allows every node. */
export function selectorKey(selector: NodeSelector): string {
  const labels = Object.entries(selector.labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return labels.length === 0 && selector.terms === null ? '' : JSON.stringify([labels, selector.terms]);
}
