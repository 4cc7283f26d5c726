import { evaluate, type Evaluation, type Owner } from '../evaluators/evaluate.js';
import { ApiError, NOT_FOUND, type Api } from './api.js';
import { objectPath, type ServedKind } from './kinds.js';
import type { KubeObject } from './object.js';

/** A workload that somebody asks about, and who is charged for it. */
export interface Subject {
  /** `Deployment default/web`. */
  readonly name: string;
  /** From the one that was asked about to the one that is charged: `its ReplicaSet default/web-1`. */
  readonly owners: readonly string[];
  /** Of the one that is charged. */
  readonly evaluation: Evaluation;
}

/** What was asked for and can not be had, in words. */
export interface NoSubject {
  readonly ok: false;
  readonly reason: string;
}

/** Owners of owners of owners: more than any kind has. */
const MOST_OWNERS = 8;

/** The kind that somebody calls `deployment`, `deployments`, `deploy` or `deployments.apps`. */
export function kindCalled(kinds: readonly ServedKind[], text: string): ServedKind | null {
  const wanted = text.toLowerCase();
  return kinds.find(({ evaluator, resource, shortNames }) => [evaluator.kind.toLowerCase(), resource, evaluator.resource, ...shortNames].includes(wanted)) ?? null;
}

/** Finds a workload and follows its owners up to the one that is charged. With `replicas`, as if it was scaled to so many. Rejects where the API server fails. */
export async function findSubject(api: Api, kinds: readonly ServedKind[], kind: ServedKind, namespace: string, name: string, replicas: number | null): Promise<{ readonly ok: true; readonly subject: Subject } | NoSubject> {
  const asked = await read(api, kind, namespace, name);
  if (asked === null) return { ok: false, reason: `${kind.resource} "${name}" not found in namespace ${namespace}` };
  const owners: string[] = [];
  let [object, evaluation, owner] = [asked, ...looked(asked)];
  while (owner !== null && owners.length < MOST_OWNERS) {
    const { apiVersion, kind: ownerKind, name: ownerName, uid } = owner;
    const served = kinds.find(({ evaluator }) => evaluator.kind === ownerKind && evaluator.apiGroup === groupOf(apiVersion));
    const above = served === undefined ? null : await read(api, served, namespace, ownerName);
    // A reference alone can be made up: who is not there, with that uid, is not charged.
    if (above?.metadata?.uid !== uid) break;
    owners.push(`${ownerKind} ${namespace}/${ownerName}`);
    object = above;
    [evaluation, owner] = looked(object);
  }
  if (replicas !== null) {
    if (typeof object.spec?.['replicas'] !== 'number') return { ok: false, reason: `${owners.at(-1) ?? `${kind.resource} "${name}"`} has no replicas` };
    [evaluation] = looked({ ...object, spec: { ...object.spec, replicas } });
  }
  return { ok: true, subject: { name: `${kind.evaluator.kind} ${namespace}/${name}`, owners, evaluation } };
}

async function read(api: Api, kind: ServedKind, namespace: string, name: string): Promise<KubeObject | null> {
  const answer = await api.request({ method: 'GET', path: objectPath(kind, namespace, name) });
  if (answer.ok) return answer.body as KubeObject;
  if (answer.code === NOT_FOUND) return null;
  throw new ApiError(`${kind.resource} ${namespace}/${name} can not be read`, answer);
}

/** What an object asks for itself, and who is said to be charged in its place. */
function looked(object: KubeObject): [Evaluation, Owner | null] {
  let owner: Owner | null = null;
  const evaluation = evaluate(object, {
    isOwnerThere: (found) => {
      owner = found;
      return false;
    },
  });
  return [evaluation, owner];
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}
