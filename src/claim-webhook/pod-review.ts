import { GPU_SHARE_KEY } from '../gpu/annotations.js';
import { NVIDIA_GPU } from '../gpu/foreign-requests.js';
import { ALLOWED, type AdmissionResponse, type Review } from '../kube/admission/review.js';
import { annotationProblem } from '../kube/annotation-problem.js';
import { namespacePath } from '../kube/api-path.js';
import type { KubeApi } from '../kube/client.js';
import { KubeError } from '../kube/failure.js';
import { record, texts } from '../kube/json.js';
import { readPod } from '../kube/pod.js';
import type { ClaimTemplates } from './claim-templates.js';
import { convertForeign } from './foreign-conversion.js';
import { readShare, SHARE_FORM, type GpuShare } from './gpu-share.js';
import { applied } from './json-patch.js';
import { convertPod } from './pod-conversion.js';

export interface PodReviewOptions {
  readonly api: KubeApi;
  readonly templates: Pick<ClaimTemplates, 'ensure'>;
  /** Memory of a GPU, for amounts in percent; null if it is not known. */
  readonly gpuMemoryBytes: number | null;
}

/**
 * Reviews new pods that ask for conversion: requests of other projects become the two extended resources, and with
 * `intoClaims` these become claims. A dry run creates no template.
 */
export async function reviewPod(
  { operation, resource, subresource, object, namespace, dryRun }: Review,
  intoClaims: boolean,
  { api, templates, gpuMemoryBytes }: PodReviewOptions,
): Promise<AdmissionResponse> {
  if (operation !== 'CREATE' || resource !== 'pods' || subresource !== '' || object === null) return ALLOWED;
  const problem = annotationProblem(readPod(object));
  if (problem !== null) return refused(problem);
  const share = await shareOf(api, object, namespace);
  if (!share.ok) return refused(share.reason);
  const foreign = convertForeign(object, { share: share.share, gpuMemoryBytes });
  if (foreign.kind === 'refused') return refused(`the request cannot be converted: ${foreign.reason}`);
  const [patch, notes] = foreign.kind === 'converted' ? [foreign.patch, foreign.notes] : [[], []];
  if (!intoClaims) return answer(patch, notes);
  const conversion = convertPod(applied(object, patch));
  if (conversion.kind === 'unchanged')
    return answer(patch, [...notes, ...(conversion.warning === null ? [] : [conversion.warning])]);
  if (conversion.kind === 'refused')
    return refused(`the request cannot be converted into resource claims: ${conversion.reason}`);
  if (!dryRun)
    for (const template of conversion.templates) {
      const ensured = await templates.ensure(namespace, template);
      if (!ensured.ok) return refused(ensured.reason);
    }
  return answer([...patch, ...conversion.patch], notes);
}

/** What one `nvidia.com/gpu` of the pod stands for, by its own annotation or its namespace's; null without one. */
async function shareOf(
  api: KubeApi,
  object: unknown,
  namespace: string,
): Promise<{ readonly ok: true; readonly share: GpuShare | null } | { readonly ok: false; readonly reason: string }> {
  const { containers, initContainers, annotations } = readPod(object);
  if (![...containers, ...initContainers].some(({ extended }) => Number(extended(NVIDIA_GPU)) > 0))
    return { ok: true, share: null };
  const written = annotations[GPU_SHARE_KEY] ?? (await annotationsOf(api, namespace))[GPU_SHARE_KEY];
  if (written === undefined) return { ok: true, share: null };
  const share = readShare(written);
  return share === null
    ? { ok: false, reason: `annotation ${GPU_SHARE_KEY} is ${JSON.stringify(written)}; expected ${SHARE_FORM}` }
    : { ok: true, share };
}

async function annotationsOf(api: KubeApi, namespace: string): Promise<Readonly<Record<string, string>>> {
  const read = await api.request({ method: 'GET', path: namespacePath(namespace) });
  if (!read.ok) throw new KubeError(`namespace ${namespace} cannot be read`, read);
  return texts(record(record(read.body).metadata).annotations);
}

function answer(patch: readonly object[], warnings: readonly string[]): AdmissionResponse {
  if (patch.length === 0 && warnings.length === 0) return ALLOWED;
  return { allowed: true, ...(patch.length === 0 ? {} : { patch }), ...(warnings.length === 0 ? {} : { warnings }) };
}

function refused(message: string): AdmissionResponse {
  return { allowed: false, code: 422, reason: 'Invalid', message };
}
