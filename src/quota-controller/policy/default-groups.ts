import { readDefaultFor, type DefaultFor } from '../../kube/quota/default-for.js';
import type { KubeObject } from '../../kube/object.js';
import { selectsLabels } from '../../manifests/label-selector.js';

type Labels = Readonly<Record<string, string>>;

/** Kubernetes sets this label on every namespace since 1.21. */
export const NAME_LABEL = 'kubernetes.io/metadata.name';
/** Its objects without a group are never charged. */
export const SYSTEM_NAMESPACE = 'kube-system';

/** A namespace and its labels. */
export interface NamespaceObject {
  readonly name: string;
  readonly labels: Labels;
}

/** Reads a Namespace; null for an object without a name. */
export function readNamespace(object: unknown): NamespaceObject | null {
  const { name, labels = {} } = (object as KubeObject).metadata ?? {};
  return name === undefined ? null : { name, labels: { [NAME_LABEL]: name, ...labels } };
}

/** Whether a group lists or selects the namespace with these labels. */
export function names({ namespaces, namespaceSelector }: DefaultFor, labels: Labels): boolean {
  const isListed = namespaces.includes(labels[NAME_LABEL] ?? '');
  return isListed || (namespaceSelector !== null && selectsLabels(namespaceSelector, labels));
}

/**
 * Which group is charged for the objects of a namespace that name no group. A group that lists the namespace comes
 * before groups that select it by labels; of several, the first by name is charged.
 */
export class DefaultGroups {
  readonly #claims = new Map<string, DefaultFor>();
  readonly #namespaces = new Map<string, Labels>();
  readonly #exempt: ReadonlySet<string>;
  #byNamespace = new Map<string, string>();
  #isUsed = false;

  /** `ownNamespace`: the namespace of the service, whose objects are never charged without a label. */
  constructor(ownNamespace = SYSTEM_NAMESPACE) {
    this.#exempt = new Set([SYSTEM_NAMESPACE, ownNamespace]);
  }

  /** Whether a group has named namespaces since the start. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** The namespaces of each group, by the group's name. */
  claims(): ReadonlyMap<string, DefaultFor> {
    return this.#claims;
  }

  /** Notes the namespaces of a group; null for none. Whether that changed which group a namespace is charged to. */
  groupChanged(name: string, claim: DefaultFor | null): boolean {
    if (JSON.stringify(this.#claims.get(name) ?? null) === JSON.stringify(claim)) return false;
    if (claim === null) this.#claims.delete(name);
    else this.#claims.set(name, claim);
    this.#isUsed ||= claim !== null;
    this.#assign();
    return true;
  }

  /** Notes the labels of a namespace; null for a deleted one. Whether that changed which group is charged. */
  namespaceChanged(name: string, labels: Labels | null): boolean {
    if (labels === null) this.#namespaces.delete(name);
    else this.#namespaces.set(name, labels);
    if (this.#claims.size === 0) return false;
    const before = this.#byNamespace.get(name);
    this.#assign();
    return this.#byNamespace.get(name) !== before;
  }

  /** The group of a namespace; empty for none. */
  groupOf(namespace: string): string {
    return this.#byNamespace.get(namespace) ?? '';
  }

  /** The namespaces that are charged to a group, in order. */
  namespacesOf(group: string): readonly string[] {
    return [...this.#byNamespace].flatMap(([name, charged]) => (charged === group ? [name] : [])).sort();
  }

  /** Why a group cannot list these namespaces; null if it can. */
  problemOf(group: string, { namespaces }: DefaultFor): string | null {
    for (const namespace of namespaces) {
      if (this.#exempt.has(namespace))
        return `spec.defaultFor.namespaces: expected namespaces whose objects may be refused, found ${namespace}, which the cluster or this service needs; leave it out`;
      for (const [other, claim] of this.#claims)
        if (other !== group && claim.namespaces.includes(namespace))
          return `spec.defaultFor.namespaces: group ${other} pays for the unlabelled objects of namespace ${namespace} already; remove it there first`;
    }
    return null;
  }

  /** Tells which of the namespaces that a group selects stay with other groups. */
  othersOf(group: string, { namespaceSelector }: DefaultFor): readonly string[] {
    if (namespaceSelector === null) return [];
    const others = [...this.#namespaces].flatMap(([namespace, labels]) => {
      const charged = this.groupOf(namespace);
      return charged !== '' && charged !== group && selectsLabels(namespaceSelector, labels)
        ? [`${namespace} (${charged})`]
        : [];
    });
    if (others.length === 0) return [];
    const named = others.slice(0, 5).join(', ');
    return [
      `spec.defaultFor.namespaceSelector selects namespaces of other groups; the group that lists a namespace pays, else the first by name: ${named}${others.length > 5 ? ` and ${others.length - 5} more` : ''}`,
    ];
  }

  #assign(): void {
    const claims = [...this.#claims].sort(([a], [b]) => (a < b ? -1 : 1));
    const assigned = new Map<string, string>();
    const assign = (namespace: string, group: string): void => {
      if (!assigned.has(namespace) && !this.#exempt.has(namespace)) assigned.set(namespace, group);
    };
    for (const [group, { namespaces }] of claims) for (const namespace of namespaces) assign(namespace, group);
    for (const [group, { namespaceSelector }] of claims) {
      if (namespaceSelector === null) continue;
      for (const [namespace, labels] of this.#namespaces)
        if (selectsLabels(namespaceSelector, labels)) assign(namespace, group);
    }
    this.#byNamespace = assigned;
  }
}

/** The default groups of some groups and namespaces, as the API server has them. */
export function defaultGroupsOf(groups: readonly unknown[], namespaces: readonly unknown[]): DefaultGroups {
  const defaults = new DefaultGroups();
  for (const namespace of namespaces.flatMap((object) => readNamespace(object) ?? []))
    defaults.namespaceChanged(namespace.name, namespace.labels);
  for (const object of groups) {
    const { metadata, spec } = object as KubeObject;
    if (metadata?.name !== undefined) defaults.groupChanged(metadata.name, readDefaultFor(spec?.['defaultFor']));
  }
  return defaults;
}
