import type { KubeAnswer, KubeApi, KubeRequest } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import { LEDGERS_PATH } from '../../src/kube/quota/names.js';

interface StoredObject {
  readonly text: string;
  readonly resourceVersion: string;
}

interface SentObject {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
}

/** The ledger objects of an API server in this process. Records the bytes of each stored write. */
export class ApiMemory implements KubeApi {
  /** Bytes of each stored object, in the order of the writes. */
  readonly writes: number[] = [];
  readonly #objects = new Map<string, StoredObject>();
  #revision = 0;

  async request({ method, path, body }: KubeRequest): Promise<KubeAnswer> {
    if (method === 'GET' && path === LEDGERS_PATH)
      return { ok: true, body: { items: [...this.#objects.values()].map(({ text }) => JSON.parse(text) as unknown) } };
    if (!path.startsWith(LEDGERS_PATH)) return { ok: true, body: { items: [] } };
    if (method === 'POST' || method === 'PUT') return this.#write(method, body as SentObject);
    const name = decodeURIComponent(path.slice(LEDGERS_PATH.length + 1));
    const found = this.#objects.get(name);
    if (found === undefined) return failure('not-found', name);
    if (method === 'DELETE') this.#objects.delete(name);
    return { ok: true, body: JSON.parse(found.text) as unknown };
  }

  #write(method: string, sent: SentObject): KubeAnswer {
    const { name } = sent.metadata;
    const known = this.#objects.get(name);
    if (method === 'POST' && known !== undefined) return failure('already-exists', name);
    if (method === 'PUT' && known?.resourceVersion !== sent.metadata.resourceVersion) return failure('conflict', name);
    const resourceVersion = `${++this.#revision}`;
    const object = { ...sent, metadata: { ...sent.metadata, uid: `uid-${name}`, resourceVersion } };
    const text = JSON.stringify(object);
    this.#objects.set(name, { text, resourceVersion });
    this.writes.push(Buffer.byteLength(text));
    return { ok: true, body: { metadata: object.metadata } };
  }
}
