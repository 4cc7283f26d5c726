import { type Demand, refKey, evaluateAlone, type EvaluationOptions, type Owner } from '../../quota/index.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { hasReferences, type ServedKind } from '../kinds.js';
import { versionOf, type KubeObject } from '../../kube/object.js';

/** The fields of a workload that the reconciler needs. */
export interface WorkloadObject {
  readonly kind: ServedKind;
  /** Key by `refKey`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly version: number;
  /** Value of the group label. */
  readonly group: string;
  /** Null if the object itself is not charged. */
  readonly demand: Demand | null;
  /** The controller named by the object, not verified yet. */
  readonly owner: Owner | null;
  /** Labels of an object with an owner; empty for others. */
  readonly labels: Readonly<Record<string, string>>;
  readonly terminating: boolean;
  /** Why the demand cannot be read; null if it can. */
  readonly problem: string | null;
  /** Whether another object holds a part of the demand. */
  readonly refers: boolean;
}

/** Reads a workload. */
export function readWorkloadObject(
  kind: ServedKind,
  object: unknown,
  options: EvaluationOptions,
): WorkloadObject | null {
  const { apiGroup, kind: name } = kind.evaluator;
  // Items of lists have no apiVersion and kind.
  const apiVersion = kind.path.startsWith('/apis/') ? kind.path.split('/').slice(2, 4).join('/') : 'v1';
  const manifest = { ...(object as KubeObject), apiVersion, kind: name };
  const { metadata } = manifest;
  const group = metadata?.labels?.[options.groupLabel ?? GROUP_LABEL] ?? '';
  if (metadata?.uid === undefined || metadata.name === undefined || group === '') return null;
  const { evaluation, owner } = evaluateAlone(manifest, options);
  const { namespace = '', uid } = metadata;
  const version = versionOf(manifest);
  const ref = { kind: apiGroup === '' ? name : `${name}.${apiGroup}`, namespace, name: metadata.name };
  const demand =
    evaluation.ok && evaluation.demand !== null
      ? { ...evaluation.demand, workload: { ...evaluation.demand.workload, version } }
      : null;
  return {
    kind,
    key: refKey(ref),
    namespace,
    name: metadata.name,
    uid,
    version,
    group,
    demand,
    owner,
    labels: owner === null ? {} : (metadata.labels ?? {}),
    terminating: metadata.deletionTimestamp !== undefined,
    refers: hasReferences(manifest) && options.lookup === undefined,
    problem: evaluation.ok ? null : `${evaluation.code}: ${evaluation.reason}`,
  };
}
