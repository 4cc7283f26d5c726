import type { KubeApi } from '../client.js';
import { KubeError } from '../failure.js';

/** How the API server reaches the webhooks: a service of the cluster, or a URL. */
export type WebhookTarget =
  | { readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port: number } };

/** What every webhook of ours says of its reviews. The API server waits for an answer as long as by default. */
export const REVIEWS = { admissionReviewVersions: ['v1'], matchPolicy: 'Equivalent', timeoutSeconds: 10 } as const;

/** The `clientConfig` of a webhook at this path; `authority` is PEM. */
export function clientConfig(target: WebhookTarget, path: string, authority: string): object {
  const caBundle = Buffer.from(authority).toString('base64');
  return 'url' in target
    ? { url: `${target.url}${path}`, caBundle }
    : { service: { ...target.service, path }, caBundle };
}

const ROOT = '/apis/admissionregistration.k8s.io/v1';
const ATTEMPTS = 5;

/** The fields of a webhook configuration that a service writes. */
export interface WebhookConfiguration {
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly Webhook[];
}

/** The fields of a registered webhook that this program reads. */
interface Webhook {
  readonly name: string;
  readonly failurePolicy: string;
  readonly rules: readonly object[];
  readonly matchConditions?: readonly unknown[];
  readonly [field: string]: unknown;
}

/**
 * Creates or updates a webhook configuration. `matchConditions` that an operator added to a webhook without conditions
 * of its own stay. `configurationOf` is called after the present object was read, so that an older authority never
 * replaces a newer one.
 */
export async function writeConfiguration(
  api: KubeApi,
  kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration',
  name: string,
  configurationOf: () => Promise<WebhookConfiguration>,
): Promise<void> {
  const collection = `${ROOT}/${kind.toLowerCase()}s`;
  const path = `${collection}/${encodeURIComponent(name)}`;
  for (let attempt = 1; ; attempt++) {
    const existing = await api.request({ method: 'GET', path });
    if (!existing.ok && existing.code !== 'not-found')
      throw new KubeError('the webhook configuration cannot be read', existing);
    const { metadata, webhooks = [] } = (existing.ok ? existing.body : { metadata: {} }) as {
      readonly metadata: { readonly resourceVersion?: string };
      readonly webhooks?: readonly Webhook[];
    };
    const configuration = await configurationOf();
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      ...configuration,
      webhooks: configuration.webhooks.map((webhook) => ({ ...conditionsOf(webhook.name, webhooks), ...webhook })),
    };
    const answer = existing.ok
      ? await api.request({
          method: 'PUT',
          path,
          body: { ...body, metadata: { ...metadata, ...configuration.metadata } },
        })
      : await api.request({ method: 'POST', path: collection, body });
    if (answer.ok) return;
    if (attempt === ATTEMPTS || !['conflict', 'already-exists', 'not-found'].includes(answer.code))
      throw new KubeError('the webhook configuration cannot be written', answer);
  }
}

/** The conditions of the registered webhook of this name. */
function conditionsOf(name: string, registered: readonly Webhook[]): Pick<Webhook, 'matchConditions'> {
  const { matchConditions = [] } = registered.find((webhook) => webhook.name === name) ?? {};
  return matchConditions.length === 0 ? {} : { matchConditions };
}
