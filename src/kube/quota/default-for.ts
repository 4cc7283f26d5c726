import type { LabelSelector } from '../../manifests/label-selector.js';

/** Namespaces whose objects without the group label are charged to a group. */
export interface DefaultFor {
  readonly namespaces: readonly string[];
  readonly namespaceSelector: LabelSelector | null;
}

/** Reads `spec.defaultFor` of a group; null where it names no namespace. */
export function readDefaultFor(written: unknown): DefaultFor | null {
  const { namespaces = [], namespaceSelector = null } = (written ?? {}) as {
    readonly namespaces?: readonly string[];
    readonly namespaceSelector?: LabelSelector | null;
  };
  return namespaces.length === 0 && namespaceSelector === null ? null : { namespaces, namespaceSelector };
}
