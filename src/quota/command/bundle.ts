import {
  GROUP_LABEL,
  KNOWN_KINDS,
  apiGroupOf,
  evaluate,
  evaluatorOf,
  type Evaluation,
  type EvaluationOptions,
} from '../evaluators/evaluate.js';
import { ManifestReader, type Json } from '../evaluators/manifest.js';
import type { GroupSpec } from '../core/group-spec.js';
import { readGroupResource } from './tree-file.js';

/** What an object of a bundle is to the quota: how the webhooks would treat it. */
export type BundleEntry =
  /** A workload, as the webhook for workloads decides on it. */
  | { readonly is: 'workload'; readonly name: string; readonly evaluation: Evaluation }
  /** A BizGroupResourceQuota. */
  | { readonly is: 'group'; readonly name: string; readonly group: GroupSpec }
  /** An autoscaler whose maximum has to fit: `scaled` is its target with as many replicas. */
  | { readonly is: 'autoscaler'; readonly name: string; readonly maxReplicas: number; readonly scaled: Evaluation }
  /** No webhook asks about it: `reason` says why. */
  | { readonly is: 'unasked'; readonly name: string; readonly reason: string }
  /** It cannot be read. */
  | { readonly is: 'unreadable'; readonly name: string; readonly reason: string };

/** Reads every object of a bundle: what `helm template` or `kustomize build` writes, workloads among other objects. */
export function readBundle(manifests: readonly unknown[], options: EvaluationOptions): readonly BundleEntry[] {
  return manifests.map((manifest) => entryOf(manifest, manifests, options));
}

function entryOf(manifest: Json, bundle: readonly Json[], options: EvaluationOptions): BundleEntry {
  const reader = new ManifestReader();
  const apiVersion = reader.text(reader.at(manifest, 'apiVersion'), 'apiVersion');
  const kind = reader.text(reader.at(manifest, 'kind'), 'kind');
  if (apiVersion === '' || kind === '')
    return { is: 'unreadable', name: '', reason: 'an object without apiVersion or kind' };
  const name = nameOf(reader, manifest, apiVersion, kind);
  if (kind === 'BizGroupResourceQuota') {
    const read = readGroupResource(manifest);
    return read.ok
      ? { is: 'group', name, group: read.group }
      : { is: 'unreadable', name, reason: read.problems.join('; ') };
  }
  if (kind === 'HorizontalPodAutoscaler' && apiGroupOf(apiVersion) === 'autoscaling')
    return autoscalerOf(reader, name, manifest, bundle, options);
  const evaluator = evaluatorOf([...(options.kinds ?? []), ...KNOWN_KINDS], apiVersion, kind);
  if (evaluator === undefined) return { is: 'unasked', name, reason: `${kind} is not a kind of workload` };
  if (!evaluator.charges) return { is: 'unasked', name, reason: `a ${kind} is not charged, what it makes is` };
  const label = options.groupLabel ?? GROUP_LABEL;
  if (!isLabelled(reader, manifest, label) && options.requireLabel !== true)
    return { is: 'unasked', name, reason: unlabelledReason(reader, manifest, label) };
  return { is: 'workload', name, evaluation: evaluate(manifest, { ...lookupIn(bundle), ...options }) };
}

/** An autoscaler whose target is in the bundle and names a group; the webhook reads others from the cluster. */
function autoscalerOf(
  reader: ManifestReader,
  name: string,
  manifest: Json,
  bundle: readonly Json[],
  options: EvaluationOptions,
): BundleEntry {
  const spec = reader.at(manifest, 'spec');
  const text = (...path: readonly string[]): string =>
    reader.text(reader.at(spec, 'scaleTargetRef', ...path), `spec.scaleTargetRef.${path.join('.')}`);
  const [apiVersion, kind, targetName] = [text('apiVersion'), text('kind'), text('name')];
  const maxReplicas = reader.count(reader.at(spec, 'maxReplicas'), 'spec.maxReplicas', 0);
  const target = findIn(bundle, apiVersion, kind, targetName);
  if (target === undefined)
    return { is: 'unasked', name, reason: `its target ${kind} ${targetName} is not in the bundle: not tested` };
  if (!isLabelled(reader, target, options.groupLabel ?? GROUP_LABEL))
    return { is: 'unasked', name, reason: `its target ${kind} ${targetName} names no group` };
  const scaled = { ...(target as object), spec: { ...(reader.at(target, 'spec') as object), replicas: maxReplicas } };
  return { is: 'autoscaler', name, maxReplicas, scaled: evaluate(scaled, { ...lookupIn(bundle), ...options }) };
}

function unlabelledReason(reader: ManifestReader, manifest: Json, label: string): string {
  const pods = reader.at(manifest, 'spec', 'template');
  return isLabelled(reader, pods, label)
    ? `the webhook would not ask: the label ${label} is on its pods, it has to be on the object itself`
    : `the webhook would not ask: it has no label ${label}`;
}

function isLabelled(reader: ManifestReader, object: Json, label: string): boolean {
  return reader.at(object, 'metadata', 'labels', label) !== undefined;
}

/** What a workload of the bundle refers to is looked for in the bundle. */
function lookupIn(bundle: readonly Json[]): Pick<EvaluationOptions, 'lookup'> {
  return { lookup: (apiVersion, kind, name) => findIn(bundle, apiVersion, kind, name) };
}

function findIn(bundle: readonly Json[], apiVersion: string, kind: string, name: string): Json {
  const reader = new ManifestReader();
  return bundle.find(
    (other) =>
      reader.at(other, 'kind') === kind &&
      apiGroupOf(reader.text(reader.at(other, 'apiVersion'), 'apiVersion')) === apiGroupOf(apiVersion) &&
      reader.at(other, 'metadata', 'name') === name,
  );
}

/** As `refKey` names workloads: `Service//web`, `Deployment.apps/shop/web`. */
function nameOf(reader: ManifestReader, manifest: Json, apiVersion: string, kind: string): string {
  const text = (field: string): string => reader.text(reader.at(manifest, 'metadata', field), `metadata.${field}`);
  const apiGroup = apiGroupOf(apiVersion);
  const shortKind = apiGroup === '' ? kind : `${kind}.${apiGroup}`;
  return `${shortKind}/${text('namespace')}/${text('name') || text('generateName')}`.slice(0, 300);
}
