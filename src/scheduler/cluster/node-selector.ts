/** One requirement on a label (or, for `matchFields`, on the node's name), as Kubernetes' `NodeSelectorRequirement`. */
export interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  readonly values: readonly string[];
}

/** All of the requirements have to hold. */
export interface SelectorTerm {
  readonly labels: readonly Requirement[];
  /** Only `metadata.name` exists as a field of nodes. */
  readonly fields: readonly Requirement[];
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

/** Whether a node with this name and these labels is one of those that the selector allows, by the scheduler's rules. */
export function selects(selector: NodeSelector, name: string, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(selector.labels)) {
    if (labelOf(labels, key) !== value) return false;
  }
  if (selector.terms === null) return true;
  return selector.terms.some((term) => {
    // A term that says nothing matches no node: that is Kubernetes' rule.
    if (term.labels.length === 0 && term.fields.length === 0) return false;
    const fieldHolds = (field: Requirement) => field.key === NAME_FIELD && holds(field, name);
    return term.labels.every((label) => holds(label, labelOf(labels, label.key))) && term.fields.every(fieldHolds);
  });
}

/** A text that is equal for selectors that say the same in the same order; empty for one that allows every node. */
export function selectorKey(selector: NodeSelector): string {
  const labels = Object.entries(selector.labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return labels.length === 0 && selector.terms === null ? '' : JSON.stringify([labels, selector.terms]);
}

function labelOf(labels: Readonly<Record<string, string>>, key: string): string | null {
  return Object.hasOwn(labels, key) ? (labels[key] as string) : null;
}

function holds(requirement: Requirement, value: string | null): boolean {
  switch (requirement.operator) {
    case 'In':
      return value !== null && requirement.values.includes(value);
    case 'NotIn':
      return value === null || !requirement.values.includes(value);
    case 'Exists':
      return value !== null;
    case 'DoesNotExist':
      return value === null;
    case 'Gt':
    case 'Lt': {
      const [left, right] = [integer(value), integer(requirement.values[0] ?? null)];
      if (left === null || right === null) return false;
      return requirement.operator === 'Gt' ? left > right : left < right;
    }
  }
}

function integer(text: string | null): number | null {
  return text !== null && /^-?\d{1,15}$/u.test(text) ? Number(text) : null;
}
