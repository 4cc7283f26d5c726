import { GROUP_LABEL } from '../../manifests/group-label.js';
import type { Demand, PodSet } from '../core/admission/demand.js';
import type { Refusal } from '../core/amounts/refusal.js';
import { DEFAULT_FAMILIES, familyOf, type TypeFamily, type Types } from '../core/amounts/type-family.js';
import { BATCH_KINDS } from './batch-kinds.js';
import { CORE_KINDS } from './core-kinds.js';
import { kindName, type EvaluationContext, type Evaluator, type TemplatedPods } from './evaluator.js';
import { type GpuOfType, DEFAULT_CATALOG, type CardCatalog } from '../../manifests/gpu-resources.js';
import { ManifestReader, type Json } from '../../manifests/manifest-reader.js';
import { knownType, placedTypes, typesOf, type NodeLabels, type PlacementRule } from './placement-type.js';
import { podNeeds } from '../../manifests/pod-needs.js';
import { CLAIM_KINDS, claimAsPod } from './claim-kinds.js';
import { claimAmounts, deviceClassesOf, withClaims } from '../../manifests/claim-needs.js';
import { RAY_KINDS } from './ray-kinds.js';
import { SPARK_KINDS } from './spark-kinds.js';
import { completedPod, type ContainerDefaults } from './completed-pod.js';

/** The built-in kinds. */
export const KNOWN_KINDS: readonly Evaluator[] = [
  ...CORE_KINDS,
  ...BATCH_KINDS,
  ...RAY_KINDS,
  ...SPARK_KINDS,
  ...CLAIM_KINDS,
];

/** The controller of an object, from its owner references. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface EvaluationOptions {
  readonly groupLabel?: string | undefined;
  /** The group of objects of a namespace that name none; empty for none. Absent if no group names namespaces. */
  readonly defaultGroup?: ((namespace: string) => string) | undefined;
  /** Families whose types are read from labels; default cpu, memory and GPUs. */
  readonly families?: readonly TypeFamily[] | undefined;
  /** Kinds that take precedence over the known kinds. */
  readonly kinds?: readonly Evaluator[] | undefined;
  readonly catalog?: CardCatalog | undefined;
  /**
   * Rules that map placement to types. A workload without a type label has the type of its placement; a contradiction
   * between label and placement is refused.
   */
  readonly placement?: readonly PlacementRule[] | undefined;
  /** Refuse workloads that use a resource of a family with placement rules and have none of its types. */
  readonly strictTypes?: boolean | undefined;
  /** For existing objects: no refusal because of types. Placement takes precedence over a contradicting label. */
  readonly observes?: boolean | undefined;
  /** Labels of nodes, for pods that are bound to a node. */
  readonly nodeLabels?: NodeLabels | undefined;
  readonly chargeSurge?: boolean | undefined;
  /** Refuse workloads without a group. */
  readonly requireLabel?: boolean | undefined;
  /** Defaults that the API server adds to containers of a namespace, from its LimitRanges. */
  readonly defaultsOf?: ((namespace: string) => ContainerDefaults | null) | undefined;
  /** Overhead of pods with a RuntimeClass. */
  readonly overheadOf?: ((runtimeClass: string) => Json) | undefined;
  /** Number of nodes on which a pod of a template may run; null while nodes are unknown. */
  readonly matchingNodes?: ((template: Json) => number | null) | undefined;
  /** Looks up another object, in the same namespace or cluster-scoped. */
  readonly lookup?: ((apiVersion: string, kind: string, name: string) => Json) | undefined;
  /**
   * Whether an owner exists with its uid, so that it is charged instead of the object. Users can write any owner
   * reference; without this function, references are trusted.
   */
  readonly ownerExists?: ((owner: Owner, namespace: string) => boolean) | undefined;
}

/** Result of evaluating a manifest. */
export type Evaluation =
  | { readonly ok: true; readonly demand: Demand; /** The object has finished. */ readonly isTerminal: boolean }
  /** Not charged: another object is charged instead, or no pods run. */
  | { readonly ok: true; readonly demand: null; readonly reason: string }
  | Refusal;

/** Evaluates the manifest of a workload. A manifest is untrusted input: an invalid one gives a refusal. */
export function evaluate(manifest: Json, options: EvaluationOptions = {}): Evaluation {
  const reader = new ManifestReader();
  const apiVersion = reader.text(reader.at(manifest, 'apiVersion'), 'apiVersion');
  const kind = reader.text(reader.at(manifest, 'kind'), 'kind');
  const apiGroup = apiGroupOf(apiVersion);
  const kinds = [...(options.kinds ?? []), ...KNOWN_KINDS];
  const evaluator = evaluatorOf(kinds, apiVersion, kind);
  if (evaluator === undefined)
    return refuse(
      'InvalidManifest',
      `"${apiVersion.slice(0, 80)} ${kind.slice(0, 80)}" is not a known kind of workload`,
    );
  if (!evaluator.charges)
    return { ok: true, demand: null, reason: `a ${kind} is not charged; the objects that it creates are` };
  const owner = ownerOf(reader, manifest);
  const namespace = reader.text(reader.at(manifest, 'metadata', 'namespace'), 'metadata.namespace');
  if (
    owner !== null &&
    evaluator.amounts === undefined &&
    evaluator.labels === undefined &&
    isCharged(kinds, owner) &&
    (options.ownerExists?.(owner, namespace) ?? true)
  ) {
    return { ok: true, demand: null, reason: `its ${owner.kind} ${owner.name} is charged` };
  }
  const groupLabel = options.groupLabel ?? GROUP_LABEL;
  const labels =
    evaluator.labels?.(reader, manifest) ?? reader.texts(reader.at(manifest, 'metadata', 'labels'), 'metadata.labels');
  const named = labels.get(groupLabel) ?? '';
  const group = named === '' && evaluator.labels === undefined ? (options.defaultGroup?.(namespace) ?? '') : named;
  if (group === '' && options.requireLabel === true)
    return refuse('InvalidManifest', `the label ${groupLabel} is required`);
  const declared: Types = Object.fromEntries(
    (options.families ?? DEFAULT_FAMILIES).flatMap(({ name: family }) => {
      const type = labels.get(`${groupLabel}/${family}-type`) ?? '';
      return type === '' ? [] : [[family, type]];
    }),
  );
  const isTerminal = evaluator.isTerminal?.(reader, manifest) ?? false;
  const templated = isTerminal ? [] : evaluator.pods(reader, manifest, contextOf(options));
  const isBound = kind === 'Pod' && reader.at(manifest, 'status', 'conditions') !== undefined;
  const isClaim = CLAIM_KINDS.includes(evaluator) && !isTerminal;
  const { templated: placed, ...placing } = isClaim ? claimAsPod(reader, manifest) : { templated };
  const typed = typesOfWorkload(reader, placed, declared, { ...options, ...placing, isBound });
  if ('code' in typed) return typed;
  const { types } = typed;
  const podSets =
    evaluator.amounts === undefined || isTerminal
      ? podSetsOf(reader, templated, namespace, types, options)
      : [{ count: 1, requests: evaluator.amounts(reader, manifest, gpuOf(types, options)), unspecified: [] }];
  if (!Array.isArray(podSets)) return podSets as Refusal;
  const demand: Demand = {
    workload: {
      kind: kindName({ apiGroup, kind }),
      namespace,
      name: reader.text(reader.at(manifest, 'metadata', 'name'), 'metadata.name'),
      uid: reader.text(reader.at(manifest, 'metadata', 'uid'), 'metadata.uid'),
    },
    group,
    types,
    podSets: podSets as readonly PodSet[],
    objects: evaluator.resource,
  };
  if (reader.problems.length > 0) return refuse('InvalidManifest', reader.problems.slice(0, 5).join('; '));
  return { ok: true, demand, isTerminal };
}

/**
 * Evaluates an object without its owner and returns the owner separately. The caller must verify the owner, because
 * users can write any owner reference.
 */
export function evaluateAlone(
  manifest: Json,
  options: EvaluationOptions = {},
): { readonly evaluation: Evaluation; readonly owner: Owner | null } {
  let owner: Owner | null = null;
  const evaluation = evaluate(manifest, {
    ...options,
    ownerExists: (found) => {
      owner = found;
      return false;
    },
  });
  return { evaluation, owner };
}

/** The evaluator of a kind; undefined for an unknown kind. */
export function evaluatorOf(kinds: readonly Evaluator[], apiVersion: string, kind: string): Evaluator | undefined {
  const apiGroup = apiGroupOf(apiVersion);
  return kinds.find((known) => known.kind === kind && known.apiGroup === apiGroup);
}

/** The API group of an apiVersion: `apps` of `apps/v1`, empty for the core group. */
export function apiGroupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

function contextOf({ lookup, chargeSurge, matchingNodes }: EvaluationOptions): EvaluationContext {
  return {
    lookup: lookup ?? (() => undefined),
    chargeSurge: chargeSurge ?? false,
    matchingNodes: matchingNodes ?? (() => null),
  };
}

/** The types of a workload: from its labels, and for families without a label from the placement of its pods. */
function typesOfWorkload(
  reader: ManifestReader,
  templated: readonly TemplatedPods[],
  declared: Types,
  options: EvaluationOptions & { readonly isBound: boolean },
): { readonly types: Types } | Refusal {
  const { placement: rules = [], families = DEFAULT_FAMILIES } = options;
  const types: Record<string, string> = { ...declared };
  for (const family of new Set(rules.map((rule) => rule.family))) {
    const users = templated.filter(({ template }) => usesFamily(template, families, family, options));
    const type = typeOfFamily(reader, templated, users, family, declared[family] ?? '', options);
    if (typeof type !== 'string') return type;
    if (type !== '') types[family] = type;
  }
  return { types };
}

function typeOfFamily(
  reader: ManifestReader,
  templated: readonly TemplatedPods[],
  users: readonly TemplatedPods[],
  family: string,
  declared: string,
  {
    placement: rules = [],
    strictTypes = false,
    observes = false,
    nodeLabels,
    isBound,
    lookup = () => undefined,
  }: EvaluationOptions & {
    readonly isBound: boolean;
  },
): string | Refusal {
  const catalog = typesOf(rules, family);
  const known = knownType(catalog, declared);
  let type = declared;
  // A declared type is compared with the placement of all pods; without one, only pods that use the family have a type.
  for (const { template, path } of declared === '' ? users : templated) {
    const deviceClasses = deviceClassesOf(reader, reader.at(template, 'spec'), lookup);
    const placed = placedTypes(reader, template, rules, family, {
      nodeLabels,
      readsNodeName: !isBound,
      deviceClasses,
    });
    if (placed === null) continue;
    const [first, ...others] = placed.types;
    // A product outside the catalog does not contradict a type outside the catalog.
    const fits = type === '' || (first === undefined ? known === null : placed.types.includes(known ?? type));
    if (!fits && !observes) {
      const from =
        declared === ''
          ? `other pods of the workload have ${family}-type ${type}`
          : `the workload has ${family}-type ${type}`;
      return refuse('TypeMismatch', `${from}, but ${path || 'the pod'} requests ${placed.asked}`);
    }
    if (strictTypes && !observes && fits && type !== '' && others.length > 0)
      return refuse(
        'TypeMismatch',
        `the workload has ${family}-type ${type}, but ${path || 'the pod'} also allows ${family}-type ${placed.types.filter((other) => other !== known).join(', ')}: ${placed.asked}`,
      );
    if (first !== undefined && others.length === 0 && (type === '' || !fits)) type = first;
  }
  if (!strictTypes || observes || users.length === 0 || knownType(catalog, type) !== null) return type;
  const [subject] = users;
  return refuse(
    'TypeRequired',
    `${subject?.path || 'the pod'} uses a resource with types, and ${type === '' ? `no ${family}-type is declared` : `${family}-type ${type} is not in the catalog`}: set the ${family}-type label to one of ${catalog.join(', ')}`,
  );
}

/** Whether a container or claim of a template requests a resource of the family. */
function usesFamily(
  template: Json,
  families: readonly TypeFamily[],
  family: string,
  { lookup = () => undefined }: EvaluationOptions,
): boolean {
  const reader = new ManifestReader();
  const spec = reader.at(template, 'spec');
  const claimed = Object.keys(claimAmounts(reader, spec, 'spec', lookup, null));
  if (claimed.some((resource) => familyOf(families, resource) === family)) return true;
  const holders = [
    spec,
    ...['containers', 'initContainers'].flatMap((name) => reader.items(reader.at(spec, name), name)),
  ];
  return holders.some((holder) =>
    ['requests', 'limits'].some((side) =>
      reader
        .fields(reader.at(holder, 'resources', side), side)
        .some(([resource, quantity]) => familyOf(families, resource) === family && !isZero(quantity)),
    ),
  );
}

function gpuOf(types: Types, { catalog = DEFAULT_CATALOG }: EvaluationOptions): GpuOfType {
  return { type: types['gpu'] ?? '', catalog };
}

function isZero(quantity: Json): boolean {
  return quantity === 0 || quantity === '0';
}

function podSetsOf(
  reader: ManifestReader,
  templated: readonly TemplatedPods[],
  namespace: string,
  types: Types,
  options: EvaluationOptions,
): readonly PodSet[] | Refusal {
  const { catalog = DEFAULT_CATALOG, lookup = () => undefined, defaultsOf, overheadOf } = options;
  const podSets: PodSet[] = [];
  const names = new Set<string>();
  for (const { name, count, template, path } of templated) {
    const spec = reader.at(template, 'spec');
    if (spec === undefined && count > 0) reader.problems.push(`${path} has no spec`);
    const at = path === '' ? 'spec' : `${path}.spec`;
    const gpuType = types['gpu'] ?? '';
    const complete = completedPod(reader, spec, at, defaultsOf?.(namespace) ?? null, overheadOf ?? (() => undefined));
    const claimed = claimAmounts(reader, spec, at, lookup, catalog[gpuType] ?? null);
    const annotations = reader.at(template, 'metadata', 'annotations');
    const needs = podNeeds(reader, withClaims(reader, complete, claimed), at, gpuType, catalog, { annotations });
    if (!needs.ok) return needs;
    // Roles of one workload may have equal names, such as a worker group called head.
    let own = name;
    for (let number = 2; names.has(own); number++) own = `${name}-${number}`;
    names.add(own);
    podSets.push({ name: own, count, requests: needs.requests, limits: needs.limits, unspecified: needs.unspecified });
  }
  return podSets;
}

function ownerOf(reader: ManifestReader, manifest: Json): Owner | null {
  const found = reader
    .items(reader.at(manifest, 'metadata', 'ownerReferences'), 'metadata.ownerReferences')
    .find((owner) => reader.flag(reader.at(owner, 'controller')));
  if (found === undefined) return null;
  const text = (name: string): string => reader.text(reader.at(found, name), `metadata.ownerReferences.${name}`);
  return { apiVersion: text('apiVersion'), kind: text('kind'), name: text('name'), uid: text('uid') };
}

function isCharged(kinds: readonly Evaluator[], owner: Owner): boolean {
  const apiGroup = apiGroupOf(owner.apiVersion);
  return kinds.some((known) => known.kind === owner.kind && known.apiGroup === apiGroup && known.charges);
}

function refuse(code: Refusal['code'], reason: string): Refusal {
  return { ok: false, code, reason };
}
