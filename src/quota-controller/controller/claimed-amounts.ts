import { cardBytesOf, CLAIM_API_VERSION, claimAmounts } from '../../manifests/claim-needs.js';
import type { GpuOfType } from '../../manifests/gpu-resources.js';
import { ManifestReader } from '../../manifests/manifest-reader.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { record } from '../../kube/json.js';
import type { PodObject } from '../workloads/pod-object.js';

/** Amounts from the claims that were created for one pod. */
export interface ClaimedAmounts {
  /** Amounts by resource, in the units of container requests. */
  readonly amounts: Readonly<Record<string, number>>;
  /** Whether every claim, or its template, was found. */
  readonly isComplete: boolean;
}

/**
 * Reads the amounts of a pod's own claims: from the claim, or from its template after the claim was deleted because the
 * pod has finished. Rejects with a KubeError if the API server fails.
 */
export async function claimedBy(api: KubeApi, pod: PodObject, gpu: GpuOfType): Promise<ClaimedAmounts> {
  const own = pod.claims.filter(({ templateName }) => templateName !== '');
  if (own.length === 0) return { amounts: {}, isComplete: true };
  const found = new Map<string, unknown>();
  for (const { templateName, madeName } of own) {
    const claim = madeName === '' ? null : await read(api, pod.namespace, 'resourceclaims', madeName);
    const template =
      claim === null
        ? await read(api, pod.namespace, 'resourceclaimtemplates', templateName)
        : { spec: { spec: claim.spec } };
    if (template !== null) found.set(templateName, template);
  }
  const spec = { resourceClaims: own.map(({ templateName }) => ({ resourceClaimTemplateName: templateName })) };
  const reader = new ManifestReader();
  const amounts = claimAmounts(reader, spec, 'spec', (_, __, name) => found.get(name), cardBytesOf(gpu));
  return { amounts, isComplete: own.every(({ templateName }) => found.has(templateName)) };
}

async function read(
  api: KubeApi,
  namespace: string,
  plural: string,
  name: string,
): Promise<{ readonly spec?: unknown } | null> {
  const path = `/apis/${CLAIM_API_VERSION}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`;
  const answer = await api.request({ method: 'GET', path });
  if (answer.ok) return record(answer.body);
  if (answer.code === 'not-found') return null;
  throw new KubeError(`${plural} ${name} cannot be read`, answer);
}
