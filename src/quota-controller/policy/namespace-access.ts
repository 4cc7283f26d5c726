import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { selectsLabels } from '../../manifests/label-selector.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import type { KubeObject } from '../../kube/object.js';
import { NAME_LABEL, names } from './default-groups.js';

export interface NamespaceAccessOptions {
  readonly api: KubeApi;
  /** The informer's state of a group; null where it has none. */
  readonly observed: (name: string) => GroupObject | null;
  /** Whether all namespaces may use a group if no group on its path to the root has a selector. */
  readonly isOpenByDefault: boolean;
}

/** Limits the walk to the root; deeper than any tree. */
const MAX_DEPTH = 64;

/**
 * Decides which namespaces may charge a group: every selector on the path from the group to the root must select the
 * namespace. A group cannot admit a namespace that its parent excludes. A group that pays for the unlabelled objects of
 * a namespace lets it in.
 */
export class NamespaceAccess {
  readonly #options: NamespaceAccessOptions;

  constructor(options: NamespaceAccessOptions) {
    this.#options = options;
  }

  /**
   * Why a group cannot be used yet: it, or a group above it, is not in the API server, as where another webhook refused
   * what this one admitted. Null where all are.
   */
  async missing(group: string): Promise<string | null> {
    const { missing } = await this.#chain(group);
    if (missing === null) return null;
    const above = missing === group ? '' : ` above ${group.slice(0, 80)}`;
    return `there is no group ${missing.slice(0, 80)}${above}`;
  }

  /** Why workloads of a namespace may not charge a group; null where they may. */
  async refusal(group: string, namespace: string): Promise<string | null> {
    const { chain } = await this.#chain(group);
    const [own] = chain;
    const selecting = chain.filter(({ namespaceSelector }) => namespaceSelector !== null);
    // The engine refuses an unknown group with its own message.
    if (own === undefined || (selecting.length === 0 && this.#options.isOpenByDefault)) return null;
    const none = `no namespace may use group ${group}: neither it nor a group above it has a namespaceSelector; one of {} lets in every namespace`;
    if (selecting.length === 0 && own.defaultFor === null) return none;
    const labels = await namespaceLabels(this.#options.api, namespace);
    const isPaidFor = own.defaultFor !== null && names(own.defaultFor, labels);
    if (selecting.length === 0) return isPaidFor ? null : none;
    const refusing = selecting.find(
      ({ spec, namespaceSelector }) =>
        !(isPaidFor && spec.name === group) && !selectsLabels(namespaceSelector ?? {}, labels),
    );
    if (refusing === undefined) return null;
    const { name } = refusing.spec;
    const where = name === group ? 'its namespaceSelector' : `the namespaceSelector of group ${name} above it`;
    return `namespace ${namespace} may not use group ${group}: ${where} does not select it`;
  }

  /** The group and its ancestors as far as they exist, and the first that does not. */
  async #chain(group: string): Promise<{ readonly chain: readonly GroupObject[]; readonly missing: string | null }> {
    const chain: GroupObject[] = [];
    for (let name = group; name !== '' && chain.length < MAX_DEPTH;) {
      const found = this.#options.observed(name) ?? (await this.#read(name));
      if (found === null) return { chain, missing: name };
      chain.push(found);
      name = found.spec.parent ?? '';
    }
    return { chain, missing: null };
  }

  async #read(name: string): Promise<GroupObject | null> {
    const answer = await this.#options.api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (answer.ok) return readGroup(answer.body);
    if (answer.code === 'not-found') return null;
    throw new KubeError(`group ${name} cannot be read`, answer);
  }
}

/** Labels of a namespace, read for each decision, so that a removed label takes effect at once. */
export async function namespaceLabels(api: KubeApi, namespace: string): Promise<Readonly<Record<string, string>>> {
  const named = { [NAME_LABEL]: namespace };
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return { ...named, ...(answer.body as KubeObject).metadata?.labels };
  if (answer.code === 'not-found') return named;
  throw new KubeError(`namespace ${namespace} cannot be read`, answer);
}
