import {
  apiGroupOf,
  kindName,
  KNOWN_KINDS,
  refOfKey,
  resourceOf,
  type EvaluationOptions,
  type Evaluator,
} from '../../quota/internal.js';
import { CLAIM_API_VERSION } from '../../manifests/claim-needs.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { KubeObject } from '../../kube/object.js';

/** A kind of workload that the API server serves. */
export interface ServedKind {
  readonly evaluator: Evaluator;
  readonly resource: string;
  /** Path of the collection over all namespaces, such as `/apis/apps/v1/deployments`. */
  readonly path: string;
  readonly shortNames: readonly string[];
  /**
   * Path of the field that the scale subresource writes, such as `spec`, `replicas`. Null where the kind has a scale
   * subresource whose field is unknown.
   */
  readonly scalePath: readonly string[] | null;
}

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly shortNames?: readonly string[] }[];
}

/**
 * Discovers which of the kinds the API server serves, each in its preferred version. Kinds that are not installed are
 * left out, and so are kinds of the policy that the service may not list: `hidden` is called with their paths.
 */
export async function servedKinds(
  api: KubeApi,
  evaluators: readonly Evaluator[],
  hidden: (path: string) => void = () => undefined,
): Promise<readonly ServedKind[]> {
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
        const path = `${served.root}/${resource}`;
        if (!KNOWN_KINDS.includes(evaluator) && !(await mayList(api, path))) {
          hidden(path);
          return null;
        }
        return {
          evaluator,
          resource,
          path,
          shortNames: served.shortNames,
          scalePath: await scalePathOf(api, evaluator, served),
        };
      }),
  );
  return found.flatMap((kind) => kind ?? []);
}

/** The kind of a workload, by its `refKey`; null for a kind that is not served: none of its objects exists. */
export function servedKind(kinds: readonly ServedKind[], workload: string): ServedKind | null {
  const { kind } = refOfKey(workload);
  return kinds.find(({ evaluator }) => kindName(evaluator) === kind) ?? null;
}

/** All kinds, for manifests without an API server; scale subresources come from CustomResourceDefinitions in `api`. */
export function declaredKinds(api: KubeApi, evaluators: readonly Evaluator[]): Promise<readonly ServedKind[]> {
  return Promise.all(
    evaluators
      .filter(({ charges }) => charges)
      .map(async (evaluator) => {
        const { apiGroup } = evaluator;
        const [root, resource] = [apiGroup === '' ? '/api/v1' : `/apis/${apiGroup}/v1`, resourceOf(evaluator)];
        const scalePath = BUILT_IN.has(apiGroup) ? REPLICAS : await definedScalePath(api, evaluator, () => true);
        return { evaluator, resource, path: `${root}/${resource}`, shortNames: [], scalePath };
      }),
  );
}

async function mayList(api: KubeApi, path: string): Promise<boolean> {
  const answer = await api.request({ method: 'GET', path, query: { limit: '1' } });
  return answer.ok || answer.code !== 'forbidden';
}

/** Path of an object of a namespaced kind, from the path of its collection. */
export function objectPath(kind: ServedKind, namespace: string, name: string): string {
  const at = kind.path.lastIndexOf('/');
  return `${kind.path.slice(0, at)}/namespaces/${encodeURIComponent(namespace)}/${kind.resource}/${encodeURIComponent(name)}`;
}

/** A reference to an object that holds a part of a workload's requests. */
interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** Kinds that workloads refer to and that are not workloads: their plurals, and whether they are namespaced. */
const REFERENCED_KINDS: Readonly<Record<string, { readonly plural: string; readonly isNamespaced: boolean }>> = {
  ResourceClaimTemplate: { plural: 'resourceclaimtemplates', isNamespaced: true },
  TrainingRuntime: { plural: 'trainingruntimes', isNamespaced: true },
  ClusterTrainingRuntime: { plural: 'clustertrainingruntimes', isNamespaced: false },
};

/** Whether the evaluation of an object needs other objects. */
export function hasReferences(object: KubeObject): boolean {
  return referencesOf(object).length > 0;
}

/** Each object that a workload refers to is read from the API server, and its author waits for all of them. */
const MOST_REFERENCES = 100;

/** Why the objects that a workload refers to are not read. */
export interface TooManyReferences {
  readonly ok: false;
  readonly reason: string;
}

/**
 * Adds the objects that a workload refers to to the options of its evaluation: the workload whose template a Rollout
 * runs, the runtime of a TrainJob, the templates of resource claims.
 */
export async function withReferences(
  api: KubeApi,
  kinds: readonly ServedKind[],
  object: KubeObject,
  options: EvaluationOptions,
): Promise<EvaluationOptions | TooManyReferences> {
  const references = referencesOf(object);
  if (references.length === 0) return options;
  if (references.length > MOST_REFERENCES)
    return {
      ok: false,
      reason: `spec: expected at most ${MOST_REFERENCES} claim templates, found ${references.length}`,
    };
  const namespace = object.metadata?.namespace ?? '';
  const found = new Map<string, KubeObject>();
  for (const reference of references) {
    const referred = await readReferred(api, kinds, namespace, reference);
    if (referred !== null) found.set(referenceKey(reference), referred);
    // A runtime may use its own claims.
    for (const inner of referred === null ? [] : claimTemplatesIn(referred)) {
      const template = await readReferred(api, kinds, namespace, inner);
      if (template !== null) found.set(referenceKey(inner), template);
    }
  }
  return { ...options, lookup: (apiVersion, kind, name) => found.get(referenceKey({ apiVersion, kind, name })) };
}

function referencesOf(object: KubeObject): readonly Reference[] {
  const text = (value: unknown, absent: string): string => (typeof value === 'string' ? value : absent);
  const ref = (name: string): Readonly<Record<string, unknown>> | undefined =>
    object.spec?.[name] as Readonly<Record<string, unknown>> | undefined;
  const [workload, runtime] = [ref('workloadRef'), ref('runtimeRef')];
  return [
    ...(workload === undefined
      ? []
      : [
          {
            apiVersion: text(workload['apiVersion'], ''),
            kind: text(workload['kind'], ''),
            name: text(workload['name'], ''),
          },
        ]),
    ...(runtime === undefined
      ? []
      : [
          {
            apiVersion: `${text(runtime['apiGroup'], 'trainer.kubeflow.org')}/v1alpha1`,
            kind: text(runtime['kind'], 'ClusterTrainingRuntime'),
            name: text(runtime['name'], ''),
          },
        ]),
    ...claimTemplatesIn(object),
  ].filter(({ name }) => name !== '');
}

/** Finds the claim templates that pod templates anywhere in an object name. */
function claimTemplatesIn(object: KubeObject): readonly Reference[] {
  const names = new Set<string>();
  const search = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const fields = value as Readonly<Record<string, unknown>>;
    for (const key in fields) {
      const inner = fields[key];
      if (key === 'resourceClaimTemplateName' && typeof inner === 'string') names.add(inner);
      else search(inner);
    }
  };
  search(object.spec);
  return [...names].map((name) => ({ apiVersion: CLAIM_API_VERSION, kind: 'ResourceClaimTemplate', name }));
}

function referenceKey({ apiVersion, kind, name }: Reference): string {
  return `${apiGroupOf(apiVersion)}/${kind}/${name}`;
}

async function readReferred(
  api: KubeApi,
  kinds: readonly ServedKind[],
  namespace: string,
  { apiVersion, kind, name }: Reference,
): Promise<KubeObject | null> {
  const apiGroup = apiGroupOf(apiVersion);
  const served = kinds.find(({ evaluator }) => evaluator.kind === kind && evaluator.apiGroup === apiGroup);
  if (served !== undefined) return readObject(api, served, namespace, name);
  const referred = Object.hasOwn(REFERENCED_KINDS, kind) ? REFERENCED_KINDS[kind] : undefined;
  if (referred === undefined) return null;
  const within = referred.isNamespaced ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const path = `/apis/${apiVersion}${within}/${referred.plural}/${encodeURIComponent(name)}`;
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return answer.body as KubeObject;
  if (answer.code === 'not-found') return null;
  throw new KubeError(`${kind} ${name} cannot be read`, answer);
}

/** Returns the object with this number of replicas; null where the field of its scale subresource is unknown. */
export function withReplicas(object: KubeObject, { scalePath }: ServedKind, replicas: number): KubeObject | null {
  const path = scalePath ?? (typeof object.spec?.['replicas'] === 'number' ? REPLICAS : null);
  return path === null ? null : (withField(object, path, replicas) as KubeObject);
}

function withField(object: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const fields = typeof object === 'object' && object !== null ? (object as Readonly<Record<string, unknown>>) : {};
  return { ...fields, [name]: withField(fields[name], rest, value) };
}

/** Reads an object; null where it does not exist. Rejects with a KubeError if the API server fails. */
export async function readObject(
  api: KubeApi,
  kind: ServedKind,
  namespace: string,
  name: string,
): Promise<KubeObject | null> {
  const answer = await api.request({ method: 'GET', path: objectPath(kind, namespace, name) });
  if (answer.ok) return answer.body as KubeObject;
  if (answer.code === 'not-found') return null;
  throw new KubeError(`${kind.resource} ${namespace}/${name} cannot be read`, answer);
}

/** Resources of an API group, by plural. */
type Served = ReadonlyMap<string, ServedResource>;

interface ServedResource {
  readonly root: string;
  readonly shortNames: readonly string[];
  readonly isScaled: boolean;
}

const REPLICAS = ['spec', 'replicas'];
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** API groups of Kubernetes itself: their kinds have no CustomResourceDefinition. */
const BUILT_IN = new Set(['', 'apps', 'batch', 'resource.k8s.io']);

interface Definition {
  readonly spec?: {
    readonly versions?: readonly {
      readonly name: string;
      readonly subresources?: { readonly scale?: { readonly specReplicasPath?: string } };
    }[];
  };
}

/** Reads the field of the scale subresource from the CustomResourceDefinition. */
async function scalePathOf(
  api: KubeApi,
  evaluator: Evaluator,
  { root, isScaled }: ServedResource,
): Promise<readonly string[] | null> {
  if (!isScaled || BUILT_IN.has(evaluator.apiGroup)) return REPLICAS;
  return definedScalePath(api, evaluator, (version) => root.endsWith(`/${version}`));
}

/** Null without a definition, or if the definition's served version has no scale subresource. */
async function definedScalePath(
  api: KubeApi,
  { resource }: Evaluator,
  counts: (version: string) => boolean,
): Promise<readonly string[] | null> {
  const answer = await api.request({ method: 'GET', path: `${DEFINITIONS}/${resource}` });
  if (!answer.ok) return null;
  const { versions = [] } = (answer.body as Definition).spec ?? {};
  const [path] = versions.flatMap(({ name, subresources }) =>
    counts(name) ? (subresources?.scale?.specReplicasPath ?? []) : [],
  );
  return path === undefined ? null : path.split('.').filter((part) => part !== '');
}

/** Lists the resources of a group, each in the preferred version if that has it; empty for an unknown group. */
async function discover(api: KubeApi, apiGroup: string): Promise<Served> {
  const found = new Map<string, ServedResource>();
  for (const root of await rootsOf(api, apiGroup)) {
    const answer = await api.request({ method: 'GET', path: root });
    if (!answer.ok) throw new KubeError(`the resources of ${root} cannot be read`, answer);
    const resources = (answer.body as ResourceList).resources ?? [];
    for (const { name, shortNames = [] } of resources)
      if (!found.has(name))
        found.set(name, { root, shortNames, isScaled: resources.some((other) => other.name === `${name}/scale`) });
  }
  return found;
}

async function rootsOf(api: KubeApi, apiGroup: string): Promise<readonly string[]> {
  if (apiGroup === '') return ['/api/v1'];
  const answer = await api.request({ method: 'GET', path: `/apis/${apiGroup}` });
  if (!answer.ok && answer.code === 'not-found') return [];
  if (!answer.ok) throw new KubeError(`the API group ${apiGroup} cannot be read`, answer);
  const { preferredVersion, versions = [] } = answer.body as {
    readonly preferredVersion: { readonly groupVersion: string };
    readonly versions?: readonly { readonly groupVersion: string }[];
  };
  const all = [preferredVersion, ...versions].map(({ groupVersion }) => `/apis/${groupVersion}`);
  return [...new Set(all)];
}
