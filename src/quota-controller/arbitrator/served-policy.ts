import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';

/** The versions of the policy API that an API server serves. */
export interface ServedPolicy {
  /** Version of PodDisruptionBudget; v1 since Kubernetes 1.21. */
  readonly budgets: 'v1' | 'v1beta1';
  /** Version of Eviction; v1 since Kubernetes 1.22. */
  readonly eviction: 'policy/v1' | 'policy/v1beta1';
}

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly group?: string; readonly version?: string }[];
}

interface GroupVersions {
  readonly versions?: readonly { readonly version: string }[];
}

/** Discovers the versions; throws a KubeError if the API server does not answer. */
export async function servedPolicy(api: KubeApi): Promise<ServedPolicy> {
  const read = async (path: string): Promise<unknown> => {
    const answer = await api.request({ method: 'GET', path });
    if (!answer.ok) throw new KubeError(`${path} cannot be read`, answer);
    return answer.body;
  };
  const [core, policy] = await Promise.all([read('/api/v1'), read('/apis/policy')]);
  const eviction = (core as ResourceList).resources?.find(({ name }) => name === 'pods/eviction');
  return {
    budgets: (policy as GroupVersions).versions?.some(({ version }) => version === 'v1') === true ? 'v1' : 'v1beta1',
    eviction: eviction?.version === 'v1' ? 'policy/v1' : 'policy/v1beta1',
  };
}
