import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { selectsLabels } from '../../kube/label-selector.js';
import { readGroup, type GroupObject } from '../group-object.js';
import { GROUPS_PATH, itemPath } from '../names.js';
import type { KubeObject } from '../object.js';

export interface NamespaceAccessOptions {
  readonly api: KubeApi;
  /** A group as it was seen; null where it was not. */
  readonly seen: (name: string) => GroupObject | null;
  /** Whether all namespaces may use groups whose chain names none. */
  readonly isOpenByDefault: boolean;
}

/** Groups below groups: more levels than a tree has. */
const MOST_LEVELS = 64;
/** Kubernetes has labelled every namespace with its name since 1.21. */
const NAME_LABEL = 'kubernetes.io/metadata.name';

/**
 * Which namespaces may charge a group: those that its selector selects, and that of every group above it that has
 * one. A group lets in no namespace that its parent keeps out.
 */
export class NamespaceAccess {
  readonly #options: NamespaceAccessOptions;

  constructor(options: NamespaceAccessOptions) {
    this.#options = options;
  }

  /** Why workloads of a namespace may not charge a group; null where they may. */
  async refusal(group: string, namespace: string): Promise<string | null> {
    const chain = await this.#chain(group);
    const limiting = chain.filter(({ namespaceSelector }) => namespaceSelector !== null);
    if (limiting.length === 0) {
      // A group that is not there is refused by the engine, which says so.
      if (this.#options.isOpenByDefault || chain.length === 0) return null;
      return `no namespace may use group ${group}: neither it nor a group above it has a namespaceSelector`;
    }
    const labels = await namespaceLabels(this.#options.api, namespace);
    const refusing = limiting.find(({ namespaceSelector }) => !selectsLabels(namespaceSelector ?? {}, labels));
    if (refusing === undefined) return null;
    const { name } = refusing.spec;
    const where = name === group ? 'its namespaceSelector' : `the namespaceSelector of group ${name} above it`;
    return `namespace ${namespace} may not use group ${group}: ${where} does not select it`;
  }

  /** The group and those above it. */
  async #chain(group: string): Promise<readonly GroupObject[]> {
    const chain: GroupObject[] = [];
    for (let name = group; name !== '' && chain.length < MOST_LEVELS;) {
      const found = this.#options.seen(name) ?? (await this.#read(name));
      if (found === null) break;
      chain.push(found);
      name = found.spec.parent ?? '';
    }
    return chain;
  }

  async #read(name: string): Promise<GroupObject | null> {
    const answer = await this.#options.api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (answer.ok) return readGroup(answer.body);
    if (answer.code === 'not-found') return null;
    throw new KubeError(`group ${name} cannot be read`, answer);
  }
}

/** Labels of a namespace, read for each decision: one that loses a label is out at once. */
export async function namespaceLabels(api: KubeApi, namespace: string): Promise<Readonly<Record<string, string>>> {
  const named = { [NAME_LABEL]: namespace };
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return { ...named, ...(answer.body as KubeObject).metadata?.labels };
  if (answer.code === 'not-found') return named;
  throw new KubeError(`namespace ${namespace} cannot be read`, answer);
}
