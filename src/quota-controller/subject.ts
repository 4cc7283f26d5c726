import { apiGroupOf, evaluateAlone, type Evaluation } from '../quota/evaluators/evaluate.js';
import type { KubeApi } from '../kube/client.js';
import type { KubeObject } from './object.js';
import { readObject, withReplicas, type ServedKind } from './kinds.js';

/** A workload that somebody asks about, and who is charged for it. */
export interface Subject {
  /** `Deployment default/web`. */
  readonly name: string;
  /** From the one that was asked about to the one that is charged: `its ReplicaSet default/web-1`. */
  readonly owners: readonly string[];
  /** Of the one that is charged. */
  readonly evaluation: Evaluation;
}

/** What was asked for and cannot be had, in words. */
export interface NoSubject {
  readonly ok: false;
  readonly reason: string;
}

/** Owners of owners of owners: more than any kind has. */
const MOST_OWNERS = 8;

/** The kind that somebody calls `deployment`, `deployments`, `deploy` or `deployments.apps`. */
export function kindCalled(kinds: readonly ServedKind[], text: string): ServedKind | null {
  const wanted = text.toLowerCase();
  return (
    kinds.find(({ evaluator, resource, shortNames }) =>
      [evaluator.kind.toLowerCase(), resource, evaluator.resource, ...shortNames].includes(wanted),
    ) ?? null
  );
}

/**
 * Finds a workload and follows its owners up to the one that is charged. With `replicas`, as if it was scaled to so
 * many. Rejects where the API server fails.
 */
export async function findSubject(
  api: KubeApi,
  kinds: readonly ServedKind[],
  kind: ServedKind,
  namespace: string,
  name: string,
  replicas: number | null,
): Promise<{ readonly ok: true; readonly subject: Subject } | NoSubject> {
  const asked = await readObject(api, kind, namespace, name);
  if (asked === null) return { ok: false, reason: `${kind.resource} "${name}" not found in namespace ${namespace}` };
  const owners: string[] = [];
  let object = asked;
  let servedAs = kind;
  let { evaluation, owner } = evaluateAlone(object);
  while (owner !== null && owners.length < MOST_OWNERS) {
    const { apiVersion, kind: ownerKind, name: ownerName, uid } = owner;
    const served = kinds.find(
      ({ evaluator }) => evaluator.kind === ownerKind && evaluator.apiGroup === apiGroupOf(apiVersion),
    );
    const above = served === undefined ? null : await readObject(api, served, namespace, ownerName);
    // A reference alone can be made up: who is not there, with that uid, is not charged.
    if (above?.metadata?.uid !== uid) break;
    owners.push(`${ownerKind} ${namespace}/${ownerName}`);
    object = above;
    servedAs = served as ServedKind;
    ({ evaluation, owner } = evaluateAlone(object));
  }
  if (replicas !== null) {
    const scaled = hasReplicas(object, servedAs) ? withReplicas(object, servedAs, replicas) : null;
    if (scaled === null)
      return { ok: false, reason: `${owners.at(-1) ?? `${kind.resource} "${name}"`} has no replicas` };
    ({ evaluation } = evaluateAlone(scaled));
  }
  return { ok: true, subject: { name: `${kind.evaluator.kind} ${namespace}/${name}`, owners, evaluation } };
}

/** Whether scaling writes a field that the object has: most kinds have `spec.replicas`, some another one. */
function hasReplicas(object: KubeObject, { scalePath }: ServedKind): boolean {
  const isElsewhere = scalePath !== null && scalePath.join('.') !== 'spec.replicas';
  return isElsewhere || typeof object.spec?.['replicas'] === 'number';
}
