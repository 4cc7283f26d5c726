import type { Evaluator } from '../quota/evaluators/evaluator.js';
import type { KubeApi } from '../kube/client.js';
import { KubeError } from '../kube/failure.js';
import type { KubeObject } from './object.js';

/** A kind of workload that the API server has. */
export interface ServedKind {
  readonly evaluator: Evaluator;
  /** Plural. */
  readonly resource: string;
  /** Of all namespaces: `/apis/apps/v1/deployments`. */
  readonly path: string;
  /** `deploy`. */
  readonly shortNames: readonly string[];
}

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly shortNames?: readonly string[] }[];
}

/** `deployments.apps` in parts. */
export function resourceOf({ resource, apiGroup }: Evaluator): string {
  return apiGroup === '' ? resource : resource.slice(0, -apiGroup.length - 1);
}

/** Finds which of the kinds the API server has, in the version that it prefers of those that have it. Kinds that nobody installed are missing. */
export async function servedKinds(api: KubeApi, evaluators: readonly Evaluator[]): Promise<readonly ServedKind[]> {
  const groups = new Map<string, Promise<Served>>();
  const servedIn = (apiGroup: string): Promise<Served> => {
    const known = groups.get(apiGroup) ?? discover(api, apiGroup);
    groups.set(apiGroup, known);
    return known;
  };
  const found = await Promise.all(
    evaluators
      .filter(({ charges }) => charges)
      .map(async (evaluator): Promise<ServedKind | null> => {
        const resource = resourceOf(evaluator);
        const served = (await servedIn(evaluator.apiGroup)).get(resource);
        if (served === undefined) return null;
        return { evaluator, resource, path: `${served.root}/${resource}`, shortNames: served.shortNames };
      }),
  );
  return found.flatMap((kind) => kind ?? []);
}

/** The object of a namespace: collections of all namespaces name none. */
function objectPath(kind: ServedKind, namespace: string, name: string): string {
  const at = kind.path.lastIndexOf('/');
  return `${kind.path.slice(0, at)}/namespaces/${encodeURIComponent(namespace)}/${kind.resource}/${encodeURIComponent(name)}`;
}

/** An object of a kind as it is now; null where there is none. Rejects with an KubeError where the API server does not say. */
export async function readObject(
  api: KubeApi,
  kind: ServedKind,
  namespace: string,
  name: string,
): Promise<KubeObject | null> {
  const answer = await api.request({ method: 'GET', path: objectPath(kind, namespace, name) });
  if (answer.ok) return answer.body as KubeObject;
  if (answer.code === 'not-found') return null;
  throw new KubeError(`${kind.resource} ${namespace}/${name} can not be read`, answer);
}

/** Resources of an API group, by plural. */
type Served = ReadonlyMap<string, { readonly root: string; readonly shortNames: readonly string[] }>;

/** The resources of a group, each in the preferred version where that has it. Empty where there is no such group. */
async function discover(api: KubeApi, apiGroup: string): Promise<Served> {
  const found = new Map<string, { readonly root: string; readonly shortNames: readonly string[] }>();
  for (const root of await rootsOf(api, apiGroup)) {
    const answer = await api.request({ method: 'GET', path: root });
    if (!answer.ok) throw new KubeError(`the resources of ${root} can not be read`, answer);
    for (const { name, shortNames = [] } of (answer.body as ResourceList).resources ?? [])
      if (!found.has(name)) found.set(name, { root, shortNames });
  }
  return found;
}

/** Paths of the versions of a group, the preferred one first. */
async function rootsOf(api: KubeApi, apiGroup: string): Promise<readonly string[]> {
  if (apiGroup === '') return ['/api/v1'];
  const answer = await api.request({ method: 'GET', path: `/apis/${apiGroup}` });
  if (!answer.ok && answer.code === 'not-found') return [];
  if (!answer.ok) throw new KubeError(`the API group ${apiGroup} can not be read`, answer);
  const { preferredVersion, versions = [] } = answer.body as {
    readonly preferredVersion: { readonly groupVersion: string };
    readonly versions?: readonly { readonly groupVersion: string }[];
  };
  const all = [preferredVersion, ...versions].map(({ groupVersion }) => `/apis/${groupVersion}`);
  return [...new Set(all)];
}
