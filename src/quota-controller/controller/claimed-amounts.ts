import { cardBytesOf, CLAIM_API_VERSION, claimAmounts } from '../../quota/evaluators/claim-kinds.js';
import type { GpuOfType } from '../../quota/evaluators/evaluator.js';
import { ManifestReader } from '../../quota/evaluators/manifest.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { record } from '../../kube/json.js';
import type { PodObject } from './pod-object.js';

/** What the claims give a pod that were made of templates for it alone. */
export interface ClaimedAmounts {
  /** By resource, as containers would ask for it. */
  readonly amounts: Readonly<Record<string, number>>;
  /** Whether each claim, or the template that it was made of, was found. */
  readonly isComplete: boolean;
}

/**
 * Reads what a pod has by claims of its own: from the claim, or, once the claim is deleted because the pod is done,
 * from its template. Rejects with a KubeError where the API server fails.
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
