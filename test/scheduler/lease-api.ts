import type { KubeAnswer, KubeApi, KubeRequest } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';

interface Lease {
  readonly metadata: { readonly resourceVersion?: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: unknown;
}

/** An API server with one Lease. */
export class LeaseApi {
  #lease: Lease | null = null;
  #version = 0;

  /** The server as a replica reaches it; `isCut`: no more. */
  forReplica(replica: { isCut: boolean }): KubeApi {
    return {
      request: async (request) => (replica.isCut ? failure('unreachable', 'cut off') : this.#answer(request)),
    };
  }

  #answer({ method, body }: KubeRequest): KubeAnswer {
    const lease = this.#lease;
    if (method === 'GET') return lease === null ? failure('not-found', 'no Lease') : { ok: true, body: lease };
    const given = body as Lease;
    if (method === 'POST' && lease !== null) return failure('already-exists', 'the Lease exists');
    if (method === 'PUT' && given.metadata.resourceVersion !== lease?.metadata.resourceVersion)
      return failure('conflict', 'the Lease has changed');
    const annotations = { ...lease?.metadata.annotations, ...given.metadata.annotations };
    const next = method === 'PATCH' ? { ...lease, metadata: { ...lease?.metadata, annotations } } : given;
    this.#lease = { ...next, metadata: { ...next.metadata, resourceVersion: String(++this.#version) } };
    return { ok: true, body: this.#lease };
  }
}
