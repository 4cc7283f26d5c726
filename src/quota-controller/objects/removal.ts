import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { KubeObject } from '../../kube/object.js';
import { GROUP_FINALIZER } from '../../kube/quota/group-object.js';
import { API_GROUP, GROUPS_PATH, itemPath } from '../../kube/quota/names.js';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

/** The quota's objects in a cluster that outlive its program. */
export interface QuotaRemains {
  /** Paths of webhook configurations. */
  readonly webhooks: readonly string[];
  readonly groups: readonly string[];
  /** Names of the definitions of resources. */
  readonly definitions: readonly string[];
}

/** Finds what the quota left in the cluster. Rejects with a KubeError if the API server fails. */
export async function quotaRemains(api: KubeApi, webhookName: string): Promise<QuotaRemains> {
  const configurations = ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'].map((plural) =>
    itemPath(`${ADMISSION}/${plural}`, webhookName),
  );
  const found = await Promise.all(configurations.map(async (path) => ((await read(api, path)) === null ? [] : [path])));
  const definitions = namesOf(await read(api, DEFINITIONS)).filter((name) => name.endsWith(`.${API_GROUP}`));
  return { webhooks: found.flat(), groups: namesOf(await read(api, GROUPS_PATH)), definitions };
}

/**
 * Removes what the quota left: first the webhooks, which nothing answers any more, then the finalizers, which only the
 * program would take off, then the groups, and the definitions with all other objects. Rejects with a KubeError if the
 * API server fails; a repetition goes on.
 */
export async function removeRemains(api: KubeApi, { webhooks, groups, definitions }: QuotaRemains): Promise<void> {
  for (const path of webhooks) await remove(api, path);
  for (const group of groups) {
    const path = itemPath(GROUPS_PATH, group);
    const object = (await read(api, path)) as KubeObject | null;
    if (object === null) continue;
    const { resourceVersion, finalizers = [] } = object.metadata ?? {};
    const left = finalizers.filter((finalizer) => finalizer !== GROUP_FINALIZER);
    const answer = await api.request({
      method: 'PATCH',
      path,
      body: { metadata: { resourceVersion, finalizers: left } },
      contentType: MERGE_PATCH,
    });
    if (!answer.ok && answer.code !== 'not-found') throw new KubeError(`group ${group} cannot be released`, answer);
    await remove(api, path);
  }
  for (const name of definitions) await remove(api, itemPath(DEFINITIONS, name));
}

/** Null for an object or a kind that does not exist. */
async function read(api: KubeApi, path: string): Promise<unknown> {
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return answer.body;
  if (answer.code === 'not-found') return null;
  throw new KubeError(`${path} cannot be read`, answer);
}

async function remove(api: KubeApi, path: string): Promise<void> {
  const answer = await api.request({ method: 'DELETE', path });
  if (!answer.ok && answer.code !== 'not-found') throw new KubeError(`${path} cannot be deleted`, answer);
}

function namesOf(list: unknown): readonly string[] {
  const { items } = (list ?? {}) as { readonly items?: readonly KubeObject[] | null };
  return (items ?? []).flatMap(({ metadata }) => metadata?.name ?? []);
}
