import type { Demand, PodSet } from '../core/demand.js';
import type { Refusal } from '../core/refusal.js';
import { DEFAULT_FAMILIES, familyOf, type TypeFamily, type Types } from '../core/type-family.js';
import { BATCH_KINDS } from './batch-kinds.js';
import { CORE_KINDS } from './core-kinds.js';
import type { EvaluationContext, Evaluator, GpuOfType, TemplatedPods } from './evaluator.js';
import { DEFAULT_CATALOG, type CardCatalog } from './gpu-resources.js';
import { ManifestReader, type Json } from './manifest.js';
import { knownType, placedTypes, typesOf, type NodeLabels, type PlacementRule } from './placement-type.js';
import { podNeeds } from './pod-template.js';
import { CLAIM_KINDS, claimAmounts, claimAsPod, deviceClassesOf, withClaims } from './claim-kinds.js';
import { RAY_KINDS } from './ray-kinds.js';
import { SPARK_KINDS } from './spark-kinds.js';
import { completedPod, type ContainerDefaults } from './completed-pod.js';

/** Label of workloads that names their group; types stand in `<label>/cpu-type` and so on. */
export const GROUP_LABEL = 'biz.group.resource.quota';

/** The kinds that are known without configuration. */
export const KNOWN_KINDS: readonly Evaluator[] = [
  ...CORE_KINDS,
  ...BATCH_KINDS,
  ...RAY_KINDS,
  ...SPARK_KINDS,
  ...CLAIM_KINDS,
];

/** Who made an object, as its controller's owner reference says. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface EvaluationOptions {
  readonly groupLabel?: string | undefined;
  /** Families whose types are read from labels: those of cpu, memory and GPUs without. */
  readonly families?: readonly TypeFamily[] | undefined;
  /** Beside, and before, the known kinds. */
  readonly kinds?: readonly Evaluator[] | undefined;
  readonly catalog?: CardCatalog | undefined;
  /**
   * How placement names types. A workload that names no type is of the one that its placement names; one whose
   * placement contradicts its label is refused.
   */
  readonly placement?: readonly PlacementRule[] | undefined;
  /** Refuse workloads that use a resource of a family with rules of placement and are of none of its types. */
  readonly strictTypes?: boolean | undefined;
  /**
   * For objects that exist already: nothing is refused for its type. Where label and placement contradict each other,
   * the placement counts.
   */
  readonly observes?: boolean | undefined;
  /** Labels of nodes, for pods that name their node. */
  readonly nodeLabels?: NodeLabels | undefined;
  readonly chargeSurge?: boolean | undefined;
  /** Refuse workloads that name no group. */
  readonly requireLabel?: boolean | undefined;
  /** What the API server fills into containers of a namespace that leave it out: its LimitRanges. */
  readonly defaultsOf?: ((namespace: string) => ContainerDefaults | null) | undefined;
  /** What pods of a RuntimeClass need beside their containers. */
  readonly overheadOf?: ((runtimeClass: string) => Json) | undefined;
  /** On how many nodes a pod of a template may run; null where the nodes are not known. */
  readonly matchingNodes?: ((template: Json) => number | null) | undefined;
  /** Another object of the same namespace, or of the cluster. */
  readonly lookup?: ((apiVersion: string, kind: string, name: string) => Json) | undefined;
  /**
   * Whether an owner is really there, with that uid, and so is charged in place of what it owns: a reference alone can
   * be made up. Without this, references are believed.
   */
  readonly isOwnerThere?: ((owner: Owner, namespace: string) => boolean) | undefined;
}

/** What a manifest asks of its group. */
export type Evaluation =
  | { readonly ok: true; readonly demand: Demand; /** It is done and holds nothing. */ readonly isTerminal: boolean }
  /** Not charged itself: another object is, or nothing of it runs. */
  | { readonly ok: true; readonly demand: null; readonly reason: string }
  | Refusal;

/**
 * Reads what a workload asks for from its manifest. Anybody may have written that: what it lacks or has wrong is an
 * answer.
 */
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
      `"${apiVersion.slice(0, 80)} ${kind.slice(0, 80)}" is no kind whose pods are known`,
    );
  if (!evaluator.charges)
    return { ok: true, demand: null, reason: `a ${kind} is not charged; the objects that it creates are` };
  const owner = ownerOf(reader, manifest);
  const namespace = reader.text(reader.at(manifest, 'metadata', 'namespace'), 'metadata.namespace');
  if (
    owner !== null &&
    evaluator.amounts === undefined &&
    isCharged(kinds, owner) &&
    (options.isOwnerThere?.(owner, namespace) ?? true)
  ) {
    return { ok: true, demand: null, reason: `its ${owner.kind} ${owner.name} is charged` };
  }
  const groupLabel = options.groupLabel ?? GROUP_LABEL;
  const labels = reader.texts(reader.at(manifest, 'metadata', 'labels'), 'metadata.labels');
  const group = labels.get(groupLabel) ?? '';
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
      kind: apiGroup === '' ? kind : `${kind}.${apiGroup}`,
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
 * What an object asks for by itself, and who is said to be charged in its place: a reference alone can be made up, so
 * that is to be checked.
 */
export function evaluateAlone(
  manifest: Json,
  options: EvaluationOptions = {},
): { readonly evaluation: Evaluation; readonly owner: Owner | null } {
  let owner: Owner | null = null;
  const evaluation = evaluate(manifest, {
    ...options,
    isOwnerThere: (found) => {
      owner = found;
      return false;
    },
  });
  return { evaluation, owner };
}

/** The evaluator of a kind, undefined for a kind whose pods are not known. */
export function evaluatorOf(kinds: readonly Evaluator[], apiVersion: string, kind: string): Evaluator | undefined {
  const apiGroup = apiGroupOf(apiVersion);
  return kinds.find((known) => known.kind === kind && known.apiGroup === apiGroup);
}

/** `apps` of `apps/v1`; empty for the core. */
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

/**
 * The types that a workload is of: those of its labels, and for families without a label the one that the placement of
 * its pods names.
 */
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
  // A declared type is compared with all placement; without one, only pods that use the family have a type.
  for (const { template, path } of declared === '' ? users : templated) {
    const deviceClasses = deviceClassesOf(reader, reader.at(template, 'spec'), lookup);
    const placed = placedTypes(reader, template, rules, family, {
      nodeLabels,
      readsNodeName: !isBound,
      deviceClasses,
    });
    if (placed === null) continue;
    const [first, ...others] = placed.types;
    // A product that the catalog does not have is no type: it says nothing against a type that the catalog lacks too.
    const fits = type === '' || (first === undefined ? known === null : placed.types.includes(known ?? type));
    if (!fits && !observes) {
      const from =
        declared === ''
          ? `other pods of the workload are of ${family}-type ${type}`
          : `the workload is of ${family}-type ${type}`;
      return refuse('TypeMismatch', `${from}, but ${path || 'the pod'} asks for ${placed.asked}`);
    }
    if (strictTypes && !observes && fits && type !== '' && others.length > 0)
      return refuse(
        'TypeMismatch',
        `the workload is of ${family}-type ${type}, but ${path || 'the pod'} also takes ${family}-type ${placed.types.filter((other) => other !== known).join(', ')}: ${placed.asked}`,
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

/** Whether some container or claim of a template asks for a resource of the family. */
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
    const needs = podNeeds(reader, withClaims(reader, complete, claimed), at, gpuType, catalog);
    if (!needs.ok) return needs;
    // Roles of one workload may have the same name: a group of workers that is called head.
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
