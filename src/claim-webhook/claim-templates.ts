import type { ConvertedRequest } from '../gpu/claims/converted-request.js';
import type { Clock } from '../host/clock.js';
import type { StructuredLog } from '../host/structured-log.js';
import { ALL_CLAIM_TEMPLATES, claimTemplatePath, claimTemplatesPath, podsPath } from '../kube/api-path.js';
import { MERGE_PATCH, type KubeApi } from '../kube/client.js';
import { KubeError } from '../kube/failure.js';
import { list, record, text, texts, time, timestamp } from '../kube/json.js';
import { readPod } from '../kube/pod.js';

/** Label of the templates that this program creates and deletes. */
const MANAGED_LABEL = 'app.kubernetes.io/managed-by';
const MANAGER = 'gpu-manager-claims';
/** Annotation with the time of the last pod that was converted to the template, exact to an hour. */
export const LAST_USED_KEY = 'tencent.com/last-used';

const RENEW_MS = 3_600_000;
/** A template that no pod names is deleted this long after its last use. */
const UNUSED_MS = 86_400_000;
const ATTEMPTS = 3;

interface Template {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly isManaged: boolean;
  readonly lastUsed: number;
}

export type EnsuredTemplate = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/**
 * The claim templates of converted pods: created before the first pod that names one, and deleted when no pod does. A
 * use renews the annotation before the pod is admitted, and a deletion names the version without that renewal, so that
 * no template is deleted under a new pod.
 */
export class ClaimTemplates {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #log: StructuredLog;

  constructor(api: KubeApi, clock: Clock, log: StructuredLog) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
  }

  /** Creates the template unless it exists. Throws a `KubeError` if the API server refuses. */
  async ensure(namespace: string, { name, spec }: ConvertedRequest): Promise<EnsuredTemplate> {
    const path = claimTemplatePath(namespace, name);
    const metadata = { annotations: { [LAST_USED_KEY]: timestamp(this.#clock.now()) } };
    const what = `ResourceClaimTemplate ${namespace}/${name}`;
    for (let attempt = 1; ; attempt++) {
      const read = await this.#api.request({ method: 'GET', path });
      if (!read.ok && read.code !== 'not-found') throw new KubeError(`${what} cannot be read`, read);
      const known = read.ok ? templateOf(read.body) : null;
      if (known !== null && !known.isManaged)
        return { ok: false, reason: `${what} exists, but gpu-manager did not create it: rename or delete it` };
      if (known !== null && this.#clock.now() - known.lastUsed < RENEW_MS) return { ok: true };
      const written =
        known === null
          ? await this.#api.request({
              method: 'POST',
              path: claimTemplatesPath(namespace),
              body: {
                apiVersion: 'resource.k8s.io/v1',
                kind: 'ResourceClaimTemplate',
                metadata: { name, namespace, labels: { [MANAGED_LABEL]: MANAGER }, ...metadata },
                spec: { spec },
              },
            })
          : await this.#api.request({ method: 'PATCH', path, contentType: MERGE_PATCH, body: { metadata } });
      if (written.ok) return { ok: true };
      // Another replica created or deleted it meanwhile.
      if (attempt < ATTEMPTS && ['already-exists', 'not-found', 'conflict'].includes(written.code)) continue;
      throw new KubeError(`${what} cannot be written`, written);
    }
  }

  /** Deletes templates without use; logs failures. */
  async sweep(): Promise<void> {
    try {
      const query = { labelSelector: `${MANAGED_LABEL}=${MANAGER}` };
      const answer = await this.#api.request({ method: 'GET', path: ALL_CLAIM_TEMPLATES, query });
      if (!answer.ok) throw new KubeError('ResourceClaimTemplates cannot be listed', answer);
      const old = list(record(answer.body).items)
        .map(templateOf)
        .filter(({ isManaged, lastUsed }) => isManaged && this.#clock.now() - lastUsed >= UNUSED_MS);
      for (const namespace of new Set(old.map((template) => template.namespace))) {
        const named = await this.#namedIn(namespace);
        for (const template of old)
          if (template.namespace === namespace && !named.has(template.name)) await this.#remove(template);
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'deleting unused ResourceClaimTemplates failed; retrying');
    }
  }

  /** Templates that pods of a namespace name. */
  async #namedIn(namespace: string): Promise<ReadonlySet<string>> {
    const answer = await this.#api.request({ method: 'GET', path: podsPath(namespace) });
    if (!answer.ok) throw new KubeError(`the pods of ${namespace} cannot be listed`, answer);
    const pods = list(record(answer.body).items).map(readPod);
    return new Set(pods.flatMap(({ claims }) => claims.map(({ templateName }) => templateName)));
  }

  async #remove({ namespace, name, uid, resourceVersion }: Template): Promise<void> {
    const answer = await this.#api.request({
      method: 'DELETE',
      path: claimTemplatePath(namespace, name),
      body: { preconditions: { uid, resourceVersion } },
    });
    if (answer.ok) this.#log.info({ namespace, template: name }, 'unused ResourceClaimTemplate deleted');
    else if (answer.code !== 'conflict' && answer.code !== 'not-found')
      throw new KubeError(`ResourceClaimTemplate ${namespace}/${name} cannot be deleted`, answer);
  }
}

function templateOf(object: unknown): Template {
  const metadata = record(record(object).metadata);
  return {
    namespace: text(metadata.namespace),
    name: text(metadata.name),
    uid: text(metadata.uid),
    resourceVersion: text(metadata.resourceVersion),
    isManaged: texts(metadata.labels)[MANAGED_LABEL] === MANAGER,
    lastUsed: time(texts(metadata.annotations)[LAST_USED_KEY]) ?? 0,
  };
}
