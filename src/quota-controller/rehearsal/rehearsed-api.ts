import type { KubeAnswer, KubeApi, KubeRequest } from '../../kube/client.js';
import { failure } from '../../kube/failure.js';
import { record } from '../../kube/json.js';
import { LEDGERS_PATH } from '../../kube/quota/names.js';

/**
 * An API server in memory that stores what is written and has no other object: a rehearsal writes its ledgers here. It
 * answers in a later turn, as a server does.
 */
export class RehearsedApi implements KubeApi {
  #version = 0;

  async request({ method, path, body }: KubeRequest): Promise<KubeAnswer> {
    await new Promise(setImmediate);
    if (method === 'DELETE') return { ok: true, body: {} };
    if (method === 'GET' && path === LEDGERS_PATH) return { ok: true, body: { items: [], metadata: {} } };
    if (method === 'GET') return failure('not-found', 'a rehearsal has no objects');
    const written = record(JSON.parse(JSON.stringify(body)));
    this.#version += 1;
    const metadata = { uid: 'rehearsed', ...record(written.metadata), resourceVersion: `${this.#version}` };
    return { ok: true, body: { ...written, metadata } };
  }
}
