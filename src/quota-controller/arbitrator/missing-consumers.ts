import { selectsLabels } from '../../manifests/label-selector.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { KubeApi } from '../../kube/client.js';
import { readConsumer } from '../../kube/quota/consumer-object.js';
import { API_VERSION, CONSUMER_KIND, CONSUMERS_PATH } from '../../kube/quota/names.js';
import type { ConsumerTemplate } from '../policy/policy-object.js';
import type { ClusterView } from './cluster-view.js';

export interface MissingConsumersOptions {
  readonly api: KubeApi;
  readonly log: StructuredLog;
  /** Templates of Consumers for namespaces without one; the first template that selects a namespace applies. */
  readonly templates: () => readonly ConsumerTemplate[];
  /** Whether to create another one. */
  readonly goesOn: () => boolean;
}

/** Creates missing Consumers. A Consumer that another client created first stays as it is. */
export async function createMissingConsumers(
  view: ClusterView,
  { api, log, templates, goesOn }: MissingConsumersOptions,
): Promise<void> {
  const chosen = templates();
  for (const { name, labels } of chosen.length === 0 ? [] : view.withoutConsumer()) {
    const template = chosen.find(({ namespaceSelector }) => selectsLabels(namespaceSelector, labels));
    if (template === undefined || !goesOn()) continue;
    const body = { apiVersion: API_VERSION, kind: CONSUMER_KIND, metadata: { name }, spec: template.spec };
    const answer = await api.request({ method: 'POST', path: CONSUMERS_PATH, body });
    if (answer.ok) {
      const created = readConsumer(answer.body);
      if (created !== null) view.consumers.learn(created);
      log.info({ namespace: name }, 'consumer created by the quota policy');
    } else if (answer.code !== 'already-exists')
      log.warn({ namespace: name, code: answer.code, reason: answer.message }, 'creating a consumer failed');
  }
}
