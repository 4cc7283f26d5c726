import { apiGroupOf, kindName, type Evaluation, type Evaluator, type GroupSpec } from '../quota/internal.js';
import { ManifestReader, type Json } from '../manifests/manifest-reader.js';
import { readGroupResource } from './tree-file.js';

/** How the webhooks would treat an object of a bundle. */
export type BundleEntry =
  /** A workload, which the workload webhook reviews. */
  | { readonly is: 'workload'; readonly name: string; readonly evaluation: Evaluation }
  /** A BizGroupResourceQuota. */
  | { readonly is: 'group'; readonly name: string; readonly group: GroupSpec }
  /** An autoscaler whose maximum must fit: `scaled` is its target with that number of replicas. */
  | { readonly is: 'autoscaler'; readonly name: string; readonly maxReplicas: number; readonly scaled: Evaluation }
  /** No webhook reviews it, for the given reason. */
  | { readonly is: 'unreviewed'; readonly name: string; readonly reason: string }
  /** A webhook refuses it independent of the group's quota. */
  | { readonly is: 'refused'; readonly name: string; readonly code: string; readonly reason: string }
  /** The object cannot be read. */
  | { readonly is: 'unreadable'; readonly name: string; readonly reason: string };

/** The webhooks' knowledge beside an object's manifest, and their evaluation of it. */
export interface BundleReviewer {
  /** Label that names the group of a workload. */
  readonly groupLabel: string;
  /** The group that pays for objects of a namespace without the label; empty for none. */
  defaultGroup(namespace: string): string;
  /** Undefined for a kind that is not a workload. */
  evaluatorOf(apiVersion: string, kind: string): Evaluator | undefined;
  evaluate(manifest: Json): Promise<Evaluation>;
  /** Why a workload without the label is refused; null if it is not. */
  missingGroup(manifest: Json): Promise<string | null>;
  /** Why workloads of a namespace may not charge a group; null if they may. */
  refusal(group: string, namespace: string): Promise<string | null>;
  /** The target of an autoscaler; null where it does not exist. */
  target(apiVersion: string, kind: string, namespace: string, name: string): Promise<Json>;
  /** The object with another number of replicas, if its kind has replicas. */
  scaled(
    target: Json,
    replicas: number,
  ):
    | { readonly ok: true; readonly manifest: Json }
    | { readonly ok: false; readonly isRefused: boolean; readonly reason: string };
}

/** Reads an object of a bundle, such as the output of `helm template` or `kustomize build`. */
export async function readEntry(manifest: Json, reviewer: BundleReviewer): Promise<BundleEntry> {
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
    return autoscalerOf(reader, name, manifest, reviewer);
  const evaluator = reviewer.evaluatorOf(apiVersion, kind);
  if (evaluator === undefined) return { is: 'unreviewed', name, reason: `${kind} is not a kind of workload` };
  if (!evaluator.charges)
    return { is: 'unreviewed', name, reason: `a ${kind} is not charged; the objects that it creates are` };
  if (!isReviewed(reader, manifest, reviewer)) {
    const missing = await reviewer.missingGroup(manifest);
    if (missing !== null) return { is: 'refused', name, code: 'Forbidden', reason: missing };
    return { is: 'unreviewed', name, reason: unlabelledReason(reader, manifest, reviewer.groupLabel) };
  }
  const evaluation = await reviewer.evaluate(manifest);
  const demand = evaluation.ok ? evaluation.demand : null;
  const refused =
    demand === null || demand.group === ''
      ? null
      : await reviewer.refusal(demand.group, demand.workload.namespace ?? '');
  if (refused !== null) return { is: 'refused', name, code: 'NamespaceNotAllowed', reason: refused };
  return { is: 'workload', name, evaluation };
}

/** Reads an autoscaler whose target is known and names a group. */
async function autoscalerOf(
  reader: ManifestReader,
  name: string,
  manifest: Json,
  reviewer: BundleReviewer,
): Promise<BundleEntry> {
  const spec = reader.at(manifest, 'spec');
  const text = (...path: readonly string[]): string =>
    reader.text(reader.at(spec, 'scaleTargetRef', ...path), `spec.scaleTargetRef.${path.join('.')}`);
  const [apiVersion, kind, targetName] = [text('apiVersion'), text('kind'), text('name')];
  const maxReplicas = reader.count(reader.at(spec, 'maxReplicas'), 'spec.maxReplicas', 0);
  const namespace = reader.text(reader.at(manifest, 'metadata', 'namespace'), 'metadata.namespace');
  const target = await reviewer.target(apiVersion, kind, namespace, targetName);
  if (target === null || target === undefined)
    return { is: 'unreviewed', name, reason: `not checked: its target ${kind} ${targetName} is not known` };
  if (!isReviewed(reader, target, reviewer))
    return { is: 'unreviewed', name, reason: `its target ${kind} ${targetName} names no group` };
  const scaled = reviewer.scaled(target, maxReplicas);
  if (!scaled.ok)
    return scaled.isRefused
      ? { is: 'refused', name, code: 'Forbidden', reason: scaled.reason }
      : { is: 'unreviewed', name, reason: scaled.reason };
  return { is: 'autoscaler', name, maxReplicas, scaled: await reviewer.evaluate(scaled.manifest) };
}

function unlabelledReason(reader: ManifestReader, manifest: Json, label: string): string {
  const pods = reader.at(manifest, 'spec', 'template');
  return isLabelled(reader, pods, label)
    ? `no webhook would review it: the label ${label} is on its pods, but must be on the object itself`
    : `no webhook would review it: the label ${label} is missing`;
}

/** Whether the webhooks review a workload: it names its group, or a group pays for its namespace. */
function isReviewed(reader: ManifestReader, manifest: Json, reviewer: BundleReviewer): boolean {
  const namespace = reader.text(reader.at(manifest, 'metadata', 'namespace'), 'metadata.namespace');
  return isLabelled(reader, manifest, reviewer.groupLabel) || reviewer.defaultGroup(namespace) !== '';
}

function isLabelled(reader: ManifestReader, object: Json, label: string): boolean {
  return reader.at(object, 'metadata', 'labels', label) !== undefined;
}

/** The name in the format of `refKey`: `Service//web`, `Deployment.apps/shop/web`. */
function nameOf(reader: ManifestReader, manifest: Json, apiVersion: string, kind: string): string {
  const text = (field: string): string => reader.text(reader.at(manifest, 'metadata', field), `metadata.${field}`);
  const shortKind = kindName({ apiGroup: apiGroupOf(apiVersion), kind });
  return `${shortKind}/${text('namespace')}/${text('name') || text('generateName')}`.slice(0, 300);
}
