import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { listAll } from '../../kube/list-all.js';
import type { KubeObject } from '../../kube/object.js';
import { readGroup } from '../../kube/quota/group-object.js';
import { GROUPS_PATH } from '../../kube/quota/names.js';
import type { Log } from '../../host/log.js';

/** Annotation of the service's Lease: what was decided for this cluster. */
export const GROUPS_WITHOUT_SELECTOR_KEY = 'quota.gpu-manager.io/groups-without-selector';

const ATTEMPTS = 5;

export interface GroupsWithoutSelectorOptions {
  readonly api: KubeApi;
  /** Namespace and name of the service's Lease. */
  readonly namespace: string;
  readonly lease: string;
  readonly log: Log;
}

/**
 * Whether every namespace may use a group if no group on its path to the root has a namespaceSelector. Decided once for
 * a cluster, at the first start of the service, and kept in its Lease: open where such a group exists already, because
 * closing it would refuse the workloads of its users at an update; closed in every other cluster. Rejects if the API
 * server does not answer.
 */
export async function groupsWithoutSelectorAreOpen(options: GroupsWithoutSelectorOptions): Promise<boolean> {
  const { api, namespace, lease: name, log } = options;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const path = `${leases}/${encodeURIComponent(name)}`;
  for (let attempt = 1; ; attempt += 1) {
    const found = await api.request({ method: 'GET', path });
    if (!found.ok && found.code !== 'not-found') throw new KubeError(`the Lease ${name} cannot be read`, found);
    const lease = found.ok ? (found.body as KubeObject) : null;
    const decided = lease?.metadata?.annotations?.[GROUPS_WITHOUT_SELECTOR_KEY];
    if (decided === 'open' || decided === 'closed') return decided === 'open';
    const isOpen = await hasOpenRoot(api);
    const body = {
      ...(lease ?? { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }),
      metadata: {
        ...lease?.metadata,
        name,
        namespace,
        annotations: { ...lease?.metadata?.annotations, [GROUPS_WITHOUT_SELECTOR_KEY]: isOpen ? 'open' : 'closed' },
      },
    };
    const written =
      lease === null
        ? await api.request({ method: 'POST', path: leases, body })
        : await api.request({ method: 'PUT', path, body });
    if (written.ok) {
      log.info({ open: isOpen }, 'decided about groups without a namespaceSelector, and kept it in the Lease');
      return isOpen;
    }
    // Another replica decides at the same time, or renews the Lease.
    const isRace = written.code === 'conflict' || written.code === 'already-exists';
    if (isRace && attempt < ATTEMPTS) continue;
    log.warn(
      { reason: written.message, open: isOpen },
      'the decision about groups without a namespaceSelector cannot be kept in the Lease; set --open-groups or --no-open-groups',
    );
    return isOpen;
  }
}

/** Whether a root exists that every namespace may use. */
async function hasOpenRoot(api: KubeApi): Promise<boolean> {
  const groups = await listAll(api, 'the quota groups', GROUPS_PATH);
  return groups.some((object) => {
    const { spec, namespaceSelector } = readGroup(object);
    return (spec.parent ?? '') === '' && namespaceSelector === null;
  });
}
