/** One requirement on a label, like Kubernetes' `LabelSelectorRequirement` and `NodeSelectorRequirement`. */
export interface LabelRequirement {
  readonly key: string;
  /** `In`, `NotIn`, `Exists`, `DoesNotExist`; for nodes also `Gt` and `Lt`. */
  readonly operator: string;
  readonly values: readonly string[];
}

/** A label selector in the form of Kubernetes objects. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly (Pick<LabelRequirement, 'key' | 'operator'> & Partial<LabelRequirement>)[];
}

type Labels = Readonly<Record<string, string>>;

/** Whether a selector selects these labels. An empty selector selects everything. */
export function selectsLabels({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    hasLabels(labels, matchLabels) &&
    matchExpressions.every(({ values = [], ...rest }) => meets({ ...rest, values }, labelOf(labels, rest.key)))
  );
}

/** Whether every wanted label exists with its value. */
export function hasLabels(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => labelOf(labels, key) === value);
}

/** The value of a label; null if it does not exist. */
export function labelOf(labels: Labels, key: string): string | null {
  return Object.hasOwn(labels, key) ? (labels[key] as string) : null;
}

/** Whether a label's value (null: no label) meets a requirement. No value meets an unknown operator. */
export function meets({ operator, values }: Omit<LabelRequirement, 'key'>, value: string | null): boolean {
  switch (operator) {
    case 'In':
      return value !== null && values.includes(value);
    case 'NotIn':
      return value === null || !values.includes(value);
    case 'Exists':
      return value !== null;
    case 'DoesNotExist':
      return value === null;
    case 'Gt':
    case 'Lt': {
      const [left, right] = [integer(value), integer(values[0] ?? null)];
      if (left === null || right === null) return false;
      return operator === 'Gt' ? left > right : left < right;
    }
    default:
      return false;
  }
}

function integer(text: string | null): number | null {
  return text !== null && /^-?\d{1,15}$/u.test(text) ? Number(text) : null;
}
