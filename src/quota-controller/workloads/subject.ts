import { apiGroupOf, evaluateAlone, type Evaluation, type Owner } from '../../quota/internal.js';
import { withReplicas, type ServedKind } from './kinds.js';
import type { KubeObject } from '../../kube/object.js';
import { MAX_OWNERS } from './owned-pods.js';
import { isKind, unknownScale, type WorkloadReader } from './workload-reader.js';

/** A workload named by an operator, and the owner that is charged for it. */
export interface Subject {
  /** Kind, namespace and name, such as `Deployment default/web`. */
  readonly name: string;
  /** The owners from the named workload to the charged one, such as `its ReplicaSet default/web-1`. */
  readonly owners: readonly string[];
  /** Evaluation of the charged object. */
  readonly evaluation: Evaluation;
}

/** Why the workload cannot be evaluated. */
export interface SubjectNotFound {
  readonly ok: false;
  readonly reason: string;
}

/** Finds a kind by its name, plural, short name or full resource name, as kubectl does. */
export function findKind(kinds: readonly ServedKind[], text: string): ServedKind | null {
  const wanted = text.toLowerCase();
  return (
    kinds.find(({ evaluator, resource, shortNames }) =>
      [evaluator.kind.toLowerCase(), resource, evaluator.resource, ...shortNames].includes(wanted),
    ) ?? null
  );
}

/**
 * Finds a workload and follows its owners up to the charged one; it may be charged itself. With `replicas`, the
 * workload is evaluated as if scaled to this number. Rejects if the API server fails.
 */
export async function findSubject(
  reader: WorkloadReader,
  kind: ServedKind,
  namespace: string,
  name: string,
  replicas: number | null,
): Promise<{ readonly ok: true; readonly subject: Subject } | SubjectNotFound> {
  const isAsked = (served: ServedKind): boolean => served === kind;
  const asked = await reader.live(kind.evaluator.apiGroup, isAsked, namespace, name);
  if (asked === null) return { ok: false, reason: `${kind.resource} "${name}" not found in namespace ${namespace}` };
  const owners: string[] = [];
  let found = asked;
  let evaluation = await reader.evaluate(found.object);
  for (let owner = ownerOf(found.object, reader); isCovered(evaluation) && owners.length < MAX_OWNERS;) {
    if (owner === null) break;
    const { apiVersion, kind: ownerKind, name: ownerName, uid } = owner;
    const above = await reader.live(apiGroupOf(apiVersion), isKind(apiVersion, ownerKind), namespace, ownerName);
    // Users can write any owner reference: an owner counts only if it exists with that uid.
    if (above?.object.metadata?.uid !== uid) break;
    owners.push(`${ownerKind} ${namespace}/${ownerName}`);
    found = above;
    evaluation = await reader.evaluate(found.object);
    owner = ownerOf(found.object, reader);
  }
  if (replicas !== null) {
    const scaled = hasReplicas(found) ? withReplicas(found.object, found.kind, replicas) : null;
    if (scaled === null && found.kind.scalePath === null) return { ok: false, reason: unknownScale(found.kind) };
    if (scaled === null)
      return { ok: false, reason: `${owners.at(-1) ?? `${kind.resource} "${name}"`} has no replicas` };
    evaluation = await reader.evaluate(scaled);
  }
  return { ok: true, subject: { name: `${kind.evaluator.kind} ${namespace}/${name}`, owners, evaluation } };
}

/** Whether the owner is charged instead. */
function isCovered(evaluation: Evaluation): boolean {
  return !evaluation.ok || evaluation.demand === null || evaluation.demand.group === '';
}

function ownerOf(object: KubeObject, reader: WorkloadReader): Owner | null {
  return evaluateAlone(object, reader.options()).owner;
}

/** Whether the object has the field that scaling writes: most kinds have `spec.replicas`, some another field. */
function hasReplicas({
  object,
  kind: { scalePath },
}: {
  readonly object: KubeObject;
  readonly kind: ServedKind;
}): boolean {
  const isElsewhere = scalePath !== null && scalePath.join('.') !== 'spec.replicas';
  return isElsewhere || typeof object.spec?.['replicas'] === 'number';
}
