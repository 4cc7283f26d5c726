import type { Demand } from '../../quota/core/demand.js';
import { refKey } from '../../quota/core/workload.js';
import { evaluateAlone, GROUP_LABEL, type EvaluationOptions, type Owner } from '../../quota/evaluators/evaluate.js';
import { hasReferences, type ServedKind } from '../kinds.js';
import { versionOf, type KubeObject } from '../object.js';

/** What is kept of a workload that names a group. */
export interface WorkloadObject {
  readonly kind: ServedKind;
  /** `refKey`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly version: number;
  /** The label's value. */
  readonly group: string;
  /** Null where it is not charged itself. */
  readonly demand: Demand | null;
  /** Who is said to be charged in its place; that is to be checked. */
  readonly owner: Owner | null;
  /** Of an object with an owner; empty for others. */
  readonly labels: Readonly<Record<string, string>>;
  readonly terminating: boolean;
  /** Why what it asks for cannot be read; null where it can. */
  readonly problem: string | null;
  /** What it asks for stands in another object, which is to be read. */
  readonly refers: boolean;
}

/** Reads a workload as the API server has it. */
export function readWorkloadObject(
  kind: ServedKind,
  object: unknown,
  options: EvaluationOptions,
): WorkloadObject | null {
  const { apiGroup, kind: name } = kind.evaluator;
  // Items of lists do not say what they are.
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
