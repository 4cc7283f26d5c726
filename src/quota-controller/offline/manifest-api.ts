import { apiGroupOf, resourceOf, type Evaluator } from '../../quota/internal.js';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../kube/client.js';
import { failure } from '../../kube/failure.js';
import { record } from '../../kube/json.js';
import type { KubeObject } from '../../kube/object.js';

/** Splits a path such as `/apis/apps/v1/namespaces/shop/deployments/web`. */
const PATH = /^\/(?:api|apis\/([^/]+))\/[^/]+(?:\/namespaces\/([^/]*))?\/([^/]+)(?:\/([^/]+))?$/;

/**
 * A read-only API that serves manifests instead of a cluster's objects, in any version. Other objects are read from
 * `beyond`, if given.
 */
export class ManifestApi implements KubeApi {
  readonly #objects = new Map<string, readonly KubeObject[]>();
  readonly #beyond: KubeApi | null;

  /** `kinds` have known plurals; plurals of other kinds follow English rules. */
  constructor(manifests: readonly unknown[], kinds: readonly Evaluator[], beyond: KubeApi | null = null) {
    this.#beyond = beyond;
    for (const manifest of manifests) {
      const { apiVersion, kind } = record(manifest);
      if (typeof apiVersion !== 'string' || typeof kind !== 'string') continue;
      const apiGroup = apiGroupOf(apiVersion);
      const known = kinds.find((evaluator) => evaluator.kind === kind && evaluator.apiGroup === apiGroup);
      const collection = `${apiGroup}/${known === undefined ? pluralOf(kind) : resourceOf(known)}`;
      this.#objects.set(collection, [...(this.#objects.get(collection) ?? []), manifest as KubeObject]);
    }
  }

  async request(request: KubeRequest): Promise<KubeAnswer> {
    const [, apiGroup = '', namespace, plural = '', name] = PATH.exec(request.path) ?? [];
    if (request.method !== 'GET') return failure('invalid', 'manifests are read-only');
    const items = this.#objects.get(`${apiGroup}/${plural}`) ?? [];
    if (name === undefined) {
      if (this.#beyond !== null) return this.#beyond.request(request);
      return { ok: true, body: { items } };
    }
    const found = items.find(
      ({ metadata }) =>
        metadata?.name === decodeURIComponent(name) &&
        (namespace === undefined || (metadata.namespace ?? '') === decodeURIComponent(namespace)),
    );
    if (found !== undefined) return { ok: true, body: found };
    return this.#beyond?.request(request) ?? failure('not-found', `${plural} ${name} is in no manifest`);
  }
}

/** The plural as Kubernetes derives it from a kind: `policies`, `classes`, `nodes`. */
function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (word.endsWith('s')) return `${word}es`;
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`;
}
