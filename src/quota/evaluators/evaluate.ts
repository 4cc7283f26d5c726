import type { Demand, PodSet } from '../core/demand.js';
import type { Refusal } from '../core/refusal.js';
import type { Types } from '../core/type-family.js';
import { BATCH_KINDS } from './batch-kinds.js';
import { CORE_KINDS } from './core-kinds.js';
import type { Evaluator } from './evaluator.js';
import { DEFAULT_CATALOG, type CardCatalog } from './gpu-resources.js';
import { ManifestReader, type Json } from './manifest.js';
import { placementProblem, type PlacementRule } from './placement-type.js';
import { podNeeds } from './pod-template.js';
import { RAY_KINDS } from './ray-kinds.js';

/** Label of workloads that names their group; types stand in `<label>/cpu-type` and so on. */
export const GROUP_LABEL = 'biz.group.resource.quota';

/** The kinds that are known without configuration. */
export const KNOWN_KINDS: readonly Evaluator[] = [...CORE_KINDS, ...BATCH_KINDS, ...RAY_KINDS];

/** Who made an object, as its controller's owner reference says. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface EvaluationOptions {
  readonly groupLabel?: string | undefined;
  /** Families whose types are read from labels: `cpu`, `memory` and `gpu` without. */
  readonly families?: readonly string[] | undefined;
  /** Beside, and before, the known kinds. */
  readonly kinds?: readonly Evaluator[] | undefined;
  readonly catalog?: CardCatalog | undefined;
  readonly placement?: readonly PlacementRule[] | undefined;
  readonly chargeSurge?: boolean | undefined;
  /** Refuse workloads that name no group. */
  readonly requireLabel?: boolean | undefined;
  /** Another object of the same namespace. */
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
  if (!evaluator.charges) return { ok: true, demand: null, reason: `a ${kind} is not charged, what it makes is` };
  const owner = ownerOf(reader, manifest);
  const namespace = reader.text(reader.at(manifest, 'metadata', 'namespace'), 'metadata.namespace');
  if (owner !== null && isCharged(kinds, owner) && (options.isOwnerThere?.(owner, namespace) ?? true)) {
    return { ok: true, demand: null, reason: `its ${owner.kind} ${owner.name} is charged` };
  }
  const groupLabel = options.groupLabel ?? GROUP_LABEL;
  const labels = reader.texts(reader.at(manifest, 'metadata', 'labels'), 'metadata.labels');
  const group = labels.get(groupLabel) ?? '';
  if (group === '' && options.requireLabel === true)
    return refuse('InvalidManifest', `the label ${groupLabel} is required`);
  const families = options.families ?? ['cpu', 'memory', 'gpu'];
  const types: Types = Object.fromEntries(
    families.flatMap((family) => {
      const type = labels.get(`${groupLabel}/${family}-type`) ?? '';
      return type === '' ? [] : [[family, type]];
    }),
  );
  const isTerminal = evaluator.isTerminal?.(reader, manifest) ?? false;
  const podSets = isTerminal ? [] : podSetsOf(reader, manifest, evaluator, types, options);
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

function podSetsOf(
  reader: ManifestReader,
  manifest: Json,
  evaluator: Evaluator,
  types: Types,
  options: EvaluationOptions,
): readonly PodSet[] | Refusal {
  const context = { lookup: options.lookup ?? (() => undefined), chargeSurge: options.chargeSurge ?? false };
  const podSets: PodSet[] = [];
  for (const { name, count, template, path } of evaluator.pods(reader, manifest, context)) {
    for (const rule of options.placement ?? []) {
      const problem = placementProblem(reader, template, rule, types[rule.family] ?? '');
      if (problem !== null) return refuse('TypeMismatch', problem);
    }
    const spec = reader.at(template, 'spec');
    if (spec === undefined && count > 0) reader.problems.push(`${path} has no spec`);
    const needs = podNeeds(
      reader,
      spec,
      path === '' ? 'spec' : `${path}.spec`,
      types['gpu'] ?? '',
      options.catalog ?? DEFAULT_CATALOG,
    );
    if (!needs.ok) return needs;
    podSets.push({ name, count, requests: needs.requests, limits: needs.limits, unspecified: needs.unspecified });
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
