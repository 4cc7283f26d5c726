import {
  ApiFailure,
  alreadyExists,
  badRequest,
  conflict,
  expired,
  invalid,
  MODIFIED_MEANWHILE,
  notFound,
  statusObject,
  tooNew,
} from './api-failure.js';
import { conformed } from './custom-schema.js';
import { isJsonObject, valueAt, type Json, type KubeObject } from './kube-object.js';
import {
  changesNothing,
  deletedObject,
  isReleased,
  markedForEnd,
  newObject,
  updatedObject,
  type DeleteOptions,
} from './object-rules.js';
import type { ObjectStore } from './object-store.js';
import { jsonPatch, mergePatch, strategicMergePatch } from './patch.js';
import { apiVersionOf, type ResourceType } from './resource-type.js';
import type { Predicate } from './selector.js';

/** One object, or one subresource of it. */
export interface Target {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  /** Empty for the object itself. */
  readonly subresource: string;
}

/** The request to an admission webhook. */
export interface AdmissionRequest extends Target {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly object: KubeObject | null;
  readonly oldObject: KubeObject | null;
  readonly dryRun: boolean;
}

/** Null admits the request; any other value refuses it. It may be slow: other requests continue meanwhile. */
export type Admission = (
  request: AdmissionRequest,
) => Promise<{ readonly code: number; readonly message: string } | null>;

const MEDIA = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

interface Page {
  readonly items: readonly KubeObject[];
  readonly revision: number;
}

/** Reads and writes with the rules of the API server: preconditions, subresources, admission, dry run, pages. */
export class Resources {
  readonly #store: ObjectStore;
  readonly #now: () => number;
  readonly #types: () => readonly ResourceType[];
  readonly #pages = new Map<string, Page>();
  #pageNumber = 0;
  admission: Admission | null = null;

  constructor(store: ObjectStore, types: () => readonly ResourceType[], now: () => number) {
    this.#store = store;
    this.#types = types;
    this.#now = now;
  }

  get(target: Target): KubeObject {
    const object = this.#store.get(target.type, target.namespace, target.name);
    if (object === null) throw notFound(target.type, target.name);
    return target.subresource === 'scale' ? scaleOf(target.type, object) : object;
  }

  list(type: ResourceType, namespace: string | null, matches: Predicate, query: URLSearchParams): Json {
    const limit = Number(query.get('limit') ?? 0);
    const asked = query.get('resourceVersion') ?? '';
    if (asked !== '' && Number(asked) > this.#store.revision) throw tooNew(Number(asked), this.#store.revision);
    const token = query.get('continue') ?? '';
    // A real server answers a list "at any revision" from its cache as a whole, too.
    const paged = limit > 0 && asked !== '0';
    const page =
      token === ''
        ? { items: this.#store.list(type, namespace).filter(matches), revision: this.#store.revision }
        : this.#resume(token);
    const items = paged ? page.items.slice(0, limit) : page.items;
    const rest = page.items.slice(items.length);
    const metadata = {
      resourceVersion: String(page.revision),
      ...(rest.length === 0
        ? {}
        : { continue: this.#suspend({ items: rest, revision: page.revision }), remainingItemCount: rest.length }),
    };
    return {
      kind: `${type.kind}List`,
      apiVersion: apiVersionOf(type),
      metadata,
      items: type.custom === true ? items : items.map(bare),
    };
  }

  /** Invalidates continue tokens, as a real server does after five minutes. */
  expirePages(): void {
    this.#pages.clear();
  }

  async create(target: Target, sent: KubeObject, dryRun: boolean): Promise<KubeObject> {
    const { type, namespace } = target;
    const object = conforming(type, newObject(type, namespace, sent, this.#now()), null);
    await this.#admit({
      ...target,
      name: object.metadata.name ?? '',
      operation: 'CREATE',
      object,
      oldObject: null,
      dryRun,
    });
    if (this.#store.get(type, namespace, object.metadata.name ?? '') !== null)
      throw alreadyExists(type, object.metadata.name ?? '');
    return dryRun ? object : this.#store.put(type, object);
  }

  update(target: Target, sent: KubeObject, dryRun: boolean): Promise<KubeObject> {
    if (sent.metadata.name !== undefined && sent.metadata.name !== target.name)
      throw badRequest(
        `the name of the object (${sent.metadata.name}) does not match the name on the URL (${target.name})`,
      );
    return this.#change(target, dryRun, (current) =>
      target.subresource === 'scale'
        ? scaled(target.type, current, sent)
        : updatedObject(target.type, current, sent, target.subresource, true),
    );
  }

  patch(target: Target, contentType: string, patch: unknown, dryRun: boolean): Promise<KubeObject> {
    const apply = patcher(contentType, target.type);
    return this.#change(target, dryRun, (current) => {
      const shown = target.subresource === 'scale' ? scaleOf(target.type, current) : current;
      const patched = apply(shown, patch);
      if (!isJsonObject(patched) || !isJsonObject(patched.metadata)) throw badRequest('the patch leaves no object');
      const sent = patched as unknown as KubeObject;
      return target.subresource === 'scale'
        ? scaled(target.type, current, sent)
        : updatedObject(target.type, current, sent, target.subresource, false);
    });
  }

  async delete(target: Target, options: DeleteOptions, dryRun: boolean): Promise<Json> {
    const current = this.get({ ...target, subresource: '' });
    await this.#admit({ ...target, operation: 'DELETE', object: null, oldObject: current, dryRun });
    const latest = this.get({ ...target, subresource: '' });
    const marked = deletedObject(target.type, latest, options, this.#now());
    if (dryRun) return marked ?? latest;
    if (marked === null) {
      const ending = markedForEnd(target.type, latest, this.#now());
      if (ending !== null) this.#store.put(target.type, ending);
      const last = this.#store.remove(target.type, ending ?? latest);
      return target.type.deletedGracefully === true
        ? last
        : {
            ...statusObject(200, '', '', { name: target.name, kind: target.type.plural, uid: last.metadata.uid }),
            status: 'Success',
          };
    }
    return changesNothing(latest, marked) ? latest : this.#settle(target.type, marked);
  }

  /** The eviction subresource: a deletion that disruption budgets may refuse. */
  async evict(target: Target, eviction: Json, dryRun: boolean): Promise<Json> {
    const pod = this.get({ ...target, subresource: '' });
    for (const type of this.#types().filter((entry) => entry.kind === 'PodDisruptionBudget')) {
      for (const budget of this.#store.list(type, target.namespace)) {
        const wanted = Object.entries((valueAt(budget, 'spec.selector.matchLabels') ?? {}) as Record<string, string>);
        const covers = wanted.every(([key, value]) => pod.metadata.labels?.[key] === value);
        const allowed = valueAt(budget, 'status.disruptionsAllowed');
        if (covers && (typeof allowed !== 'number' || allowed < 1)) {
          throw new ApiFailure(
            429,
            'TooManyRequests',
            "Cannot evict pod as it would violate the pod's disruption budget.",
            {
              causes: [
                {
                  reason: 'DisruptionBudget',
                  message: `The disruption budget ${budget.metadata.name ?? ''} does not allow it`,
                },
              ],
            },
          );
        }
        if (covers && !dryRun)
          this.#store.put(type, {
            ...budget,
            status: { ...(budget.status as Json), disruptionsAllowed: (allowed as number) - 1 },
          });
      }
    }
    const options = isJsonObject(eviction.deleteOptions) ? (eviction.deleteOptions as DeleteOptions) : {};
    await this.delete({ ...target, subresource: '' }, options, dryRun);
    return { ...statusObject(201, '', ''), status: 'Success' };
  }

  /** The binding subresource, which a scheduler writes. */
  async bind(target: Target, binding: Json, dryRun: boolean): Promise<Json> {
    const node = valueAt(binding, 'target.name');
    if (typeof node !== 'string' || node === '') throw badRequest('Binding: target.name is empty');
    await this.#change({ ...target, subresource: '' }, dryRun, (current) => {
      const bound = valueAt(current, 'spec.nodeName');
      if (typeof bound === 'string' && bound !== '')
        throw conflict(target.type, target.name, `pod ${target.name} is already assigned to node "${bound}"`);
      const annotations = {
        ...current.metadata.annotations,
        ...((valueAt(binding, 'metadata.annotations') ?? {}) as Record<string, string>),
      };
      return {
        ...current,
        metadata: { ...current.metadata, annotations },
        spec: { ...(current.spec as Json), nodeName: node },
      };
    });
    return { ...statusObject(201, '', ''), status: 'Success' };
  }

  async #change(target: Target, dryRun: boolean, make: (current: KubeObject) => KubeObject): Promise<KubeObject> {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const current = this.get({ ...target, subresource: '' });
      const next = conforming(target.type, make(current), current);
      await this.#admit({ ...target, operation: 'UPDATE', object: next, oldObject: current, dryRun });
      const latest = this.#store.get(target.type, target.namespace, target.name);
      if (latest !== null && latest.metadata.resourceVersion !== current.metadata.resourceVersion) continue;
      const shown = (object: KubeObject): KubeObject =>
        target.subresource === 'scale' ? scaleOf(target.type, object) : object;
      if (dryRun || changesNothing(current, next)) return shown(next);
      return shown(this.#settle(target.type, next));
    }
    throw conflict(target.type, target.name, MODIFIED_MEANWHILE);
  }

  #settle(type: ResourceType, next: KubeObject): KubeObject {
    return isReleased(type, next) ? this.#store.remove(type, next) : this.#store.put(type, next);
  }

  async #admit(request: AdmissionRequest): Promise<void> {
    const refusal = await this.admission?.(request);
    if (refusal === null || refusal === undefined) return;
    throw new ApiFailure(
      refusal.code,
      refusal.code === 403 ? 'Forbidden' : 'Invalid',
      `admission webhook "test" denied the request: ${refusal.message}`,
    );
  }

  #suspend(page: Page): string {
    this.#pageNumber += 1;
    const token = Buffer.from(
      JSON.stringify({ v: 'meta.k8s.io/v1', rv: page.revision, page: this.#pageNumber }),
    ).toString('base64url');
    this.#pages.set(token, page);
    return token;
  }

  #resume(token: string): Page {
    const page = this.#pages.get(token);
    if (page === undefined)
      throw expired('The provided continue parameter is too old to display a consistent list result.');
    return page;
  }
}

/** A custom resource after its schema was applied. Throws on a violation. */
function conforming(type: ResourceType, object: KubeObject, old: KubeObject | null): KubeObject {
  if (type.schema === undefined) return object;
  const {
    object: kept,
    problems: [first],
  } = conformed(type.schema, object, old);
  if (first !== undefined)
    throw invalid(type, object.metadata.name ?? '', first.path === '' ? '<nil>' : first.path, first.message);
  return kept;
}

/** Items of built-in lists carry neither kind nor apiVersion. */
function bare(object: KubeObject): KubeObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return rest;
}

function patcher(contentType: string, type: ResourceType): (target: unknown, patch: unknown) => unknown {
  const media = contentType.split(';')[0]?.trim();
  if (media === MEDIA.merge) return mergePatch;
  if (media === MEDIA.json) return jsonPatch;
  if (media === MEDIA.strategic && type.custom !== true) return strategicMergePatch;
  // The test is the only applier, and sends JSON. Fields that it no longer sends stay.
  if (media === MEDIA.apply) return strategicMergePatch;
  throw new ApiFailure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${MEDIA.json}, ${MEDIA.merge}`,
  );
}

function scaleOf(type: ResourceType, object: KubeObject): KubeObject {
  if (type.scale === undefined) throw notFound(type, `${object.metadata.name ?? ''}/scale`);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: valueAt(object, type.scale.specReplicas) ?? 0 },
    status: { replicas: valueAt(object, type.scale.statusReplicas) ?? 0 },
  };
}

function scaled(type: ResourceType, current: KubeObject, scale: KubeObject): KubeObject {
  if (type.scale === undefined) throw notFound(type, `${current.metadata.name ?? ''}/scale`);
  const { resourceVersion } = scale.metadata;
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw conflict(type, current.metadata.name ?? '', MODIFIED_MEANWHILE);
  const replicas = valueAt(scale, 'spec.replicas') ?? 0;
  const sent = setAt(current, type.scale.specReplicas.split('.'), replicas) as KubeObject;
  return updatedObject(type, current, sent, '', false);
}

function setAt(object: unknown, path: readonly string[], value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  const base: Json = isJsonObject(object) ? object : {};
  return { ...base, [step]: setAt(base[step], rest, value) };
}
