import type { PodName, PodWriter, WriteFailure, WriteResult } from './pod-writer.js';
import { bindingPath, podPath } from '../kube/api-path.js';
import { MERGE_PATCH, type KubeAnswer, type KubeClient } from '../kube/client.js';
import type { KubeFailureCode } from '../kube/failure.js';

/** Bindings and annotations of pods, written to the API server. */
export class PodWrites implements PodWriter {
  readonly #client: KubeClient;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async bind(pod: PodName, node: string, annotations: Readonly<Record<string, string>>): Promise<WriteResult> {
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { namespace: pod.namespace, name: pod.name, uid: pod.uid, annotations },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    };
    return resultOf(
      await this.#client.request({ method: 'POST', path: bindingPath(pod.namespace, pod.name), body: binding }),
    );
  }

  async annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WriteResult> {
    // A patch that names the UID is refused with a conflict when the pod has another one.
    const body = { metadata: { uid: pod.uid, annotations } };
    const answer = await this.#client.request({
      method: 'PATCH',
      path: podPath(pod.namespace, pod.name),
      body,
      contentType: MERGE_PATCH,
    });
    if (!answer.ok && answer.code === 'conflict') return { ok: false, code: 'gone', reason: answer.message };
    return resultOf(answer);
  }
}

const PERMANENT: Partial<Record<KubeFailureCode, WriteFailure>> = {
  'not-found': 'gone',
  conflict: 'refused',
  forbidden: 'refused',
  invalid: 'refused',
  'already-exists': 'refused',
};

function resultOf(answer: KubeAnswer): WriteResult {
  if (answer.ok) return { ok: true };
  return { ok: false, code: PERMANENT[answer.code] ?? 'unreachable', reason: `${answer.code}: ${answer.message}` };
}
