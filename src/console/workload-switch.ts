import { MERGE_PATCH, type KubeApi } from '../kube/client.js';
import type { KubeFailure } from '../kube/failure.js';
import { SELF_SUBJECT_ACCESS_REVIEWS } from '../kube/api-path.js';
import { record, text, texts, type JsonRecord } from '../kube/json.js';
import { stopWay, suspendField, suspendSpec } from '../kube/quota/stoppable-kinds.js';
import { kindName, KNOWN_KINDS, resourceOf } from '../quota/internal.js';

/** A workload, by its kind with API group such as `Job.batch`. */
export interface WorkloadName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** What a workload is now, and whether its reader may stop it or let it run. */
export type SwitchState =
  | {
      readonly ok: true;
      readonly way: 'suspend' | 'scale';
      readonly isStopped: boolean;
      /** The replicas that it has, or had before it was stopped; absent for a kind that is suspended. */
      readonly replicas?: number;
      /** Why the reader may not change it; absent if it may. */
      readonly refusal?: string;
    }
  /** A sentence. */
  | { readonly ok: false; readonly reason: string };

export type SwitchAnswer = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Annotation of a workload that was scaled to 0 from the console: the replicas that it had. */
const REPLICAS_KEY = 'quota.gpu-manager.io/stopped-replicas';

/**
 * Reads with the reader's rights whether a workload runs. Never rejects: a failure of the API server is the reason.
 */
export async function switchState(api: KubeApi, workload: WorkloadName): Promise<SwitchState> {
  const found = await read(api, workload);
  if (!found.ok) return found;
  const { way, object, place } = found;
  const spec = record(object.spec);
  const refusal = await refusalOf(api, workload, place);
  if (way === 'suspend') {
    const isStopped =
      suspendField(workload.kind).reduce<unknown>((value, field) => record(value)[field], spec) === true;
    return { ok: true, way, isStopped, ...refusal };
  }
  const replicas = typeof spec.replicas === 'number' ? spec.replicas : 1;
  return { ok: true, way, isStopped: replicas === 0, replicas: replicas || keptReplicas(object), ...refusal };
}

/**
 * Stops a workload, or lets it run with as many replicas as it had, with the reader's rights. A workload that is so
 * already stays as it is. Never rejects.
 */
export async function switchWorkload(api: KubeApi, workload: WorkloadName, isStopped: boolean): Promise<SwitchAnswer> {
  const found = await read(api, workload);
  if (!found.ok) return found;
  const { way, object, place } = found;
  const { resourceVersion } = record(object.metadata);
  const { replicas } = record(object.spec);
  const now = typeof replicas === 'number' ? replicas : 1;
  if (way === 'scale' && (now === 0) === isStopped) return { ok: true };
  const change =
    way === 'suspend'
      ? { metadata: { resourceVersion }, spec: suspendSpec(workload.kind, isStopped) }
      : {
          metadata: { resourceVersion, annotations: { [REPLICAS_KEY]: isStopped ? String(now) : null } },
          spec: { replicas: isStopped ? 0 : keptReplicas(object) },
        };
  const answer = await api.request({ method: 'PATCH', path: place.path, body: change, contentType: MERGE_PATCH });
  return answer.ok ? { ok: true } : { ok: false, reason: reasonOf(answer) };
}

interface Place {
  readonly group: string;
  readonly resource: string;
  readonly path: string;
}

type Found =
  | { readonly ok: true; readonly way: 'suspend' | 'scale'; readonly object: JsonRecord; readonly place: Place }
  | { readonly ok: false; readonly reason: string };

async function read(api: KubeApi, { kind, namespace, name }: WorkloadName): Promise<Found> {
  const way = stopWay(kind);
  const evaluator = KNOWN_KINDS.find((one) => kindName(one) === kind);
  if (way === null || evaluator === undefined) return { ok: false, reason: `a ${kind} cannot be stopped from here` };
  const { apiGroup } = evaluator;
  const resource = resourceOf(evaluator);
  const root = await rootOf(api, apiGroup);
  if (typeof root !== 'string') return { ok: false, reason: reasonOf(root) };
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
  const answer = await api.request({ method: 'GET', path });
  if (!answer.ok) return { ok: false, reason: reasonOf(answer) };
  return { ok: true, way, object: record(answer.body), place: { group: apiGroup, resource, path } };
}

/** Path of the preferred version of an API group. */
async function rootOf(api: KubeApi, group: string): Promise<string | KubeFailure> {
  if (group === '') return '/api/v1';
  if (group === 'apps' || group === 'batch') return `/apis/${group}/v1`;
  const answer = await api.request({ method: 'GET', path: `/apis/${group}` });
  if (!answer.ok) return answer;
  const { groupVersion } = record(record(answer.body).preferredVersion);
  return `/apis/${text(groupVersion) || `${group}/v1`}`;
}

/** Why the reader may not patch the object; nothing if it may. */
async function refusalOf(
  api: KubeApi,
  { namespace, name }: WorkloadName,
  { group, resource }: Place,
): Promise<{ readonly refusal?: string }> {
  const answer = await api.request({
    method: 'POST',
    path: SELF_SUBJECT_ACCESS_REVIEWS,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb: 'patch', group, resource, namespace, name } },
    },
  });
  if (!answer.ok) return { refusal: reasonOf(answer) };
  const { allowed, reason } = record(record(answer.body).status);
  const why = text(reason) === '' ? '' : ` (${text(reason)})`;
  return allowed === true ? {} : { refusal: `you may not patch ${resource} in namespace ${namespace}${why}` };
}

function keptReplicas(object: JsonRecord): number {
  const kept = Number(texts(record(object.metadata).annotations)[REPLICAS_KEY]);
  return Number.isSafeInteger(kept) && kept > 0 ? kept : 1;
}

function reasonOf({ code, message }: KubeFailure): string {
  return code === 'conflict' ? 'it was changed at the same moment; try again' : message;
}
