import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as bodyOf } from 'node:stream/consumers';
import { Listeners } from '../host/listeners.js';
import { discoveryOf, type ServedResource } from './api-discovery.js';
import { list, record, text, timestamp, type JsonRecord } from '../kube/json.js';

/** An object of the emulated API. */
export type ApiObject = JsonRecord & { readonly metadata: JsonRecord };

interface Place {
  readonly plural: string;
  /** Empty for objects without a namespace, and for a list of all namespaces. */
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
}

/** An object as it was stored last, with the plural of its resource. */
export interface StoredObject {
  readonly plural: string;
  readonly object: ApiObject;
}

interface Watcher {
  readonly place: Place;
  readonly matches: (object: ApiObject) => boolean;
  readonly response: ServerResponse;
}

const PATH =
  /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[a-z]+)(?:\/(?<name>[^/]+))?(?:\/status)?$/u;

/**
 * The objects of an emulated API server over HTTP, as far as agents and the console use them: list and watch with
 * selectors, get, create, replace, merge patch and delete, discovery, and the proxy to the pods of agents. It checks
 * nothing: no schema, no rights, no conflicts.
 */
export class ApiObjects {
  /** What discovery tells. */
  served: readonly ServedResource[] = [];
  /** Port on this machine of the HTTP server of a pod; null for a pod without one. */
  reach: (pod: string) => number | null = () => null;
  readonly #objects = new Map<string, ApiObject>();
  readonly #watchers = new Set<Watcher>();
  readonly #stored = new Listeners<StoredObject>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  #revision = 1;

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** Listens on a free port of the loopback interface. */
  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A kubeconfig for this server. JSON is YAML. */
  kubeconfig(): string {
    const { port } = this.#server.address() as AddressInfo;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'emulated', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'emulated', user: {} }],
      contexts: [{ name: 'emulated', context: { cluster: 'emulated', user: 'emulated' } }],
      'current-context': 'emulated',
    });
  }

  /** All objects of a resource, by its plural. */
  all(plural: string): readonly ApiObject[] {
    return [...this.#objects].flatMap(([key, object]) => (key.startsWith(`${plural}/`) ? object : []));
  }

  /** Stores an object under its namespace and name. */
  put(plural: string, object: JsonRecord): ApiObject {
    const metadata = record(object.metadata);
    return this.#store({ plural, namespace: text(metadata.namespace), name: text(metadata.name) }, object);
  }

  /** Calls `listener` for objects that are created or changed; the returned function unsubscribes. */
  onStored(listener: (stored: StoredObject) => void): () => void {
    return this.#stored.add(listener);
  }

  remove(plural: string, namespace: string, name: string): void {
    const place = { plural, namespace, name };
    const object = this.#objects.get(keyOf(place));
    if (object === undefined) return;
    this.#objects.delete(keyOf(place));
    this.#tell('DELETED', place, this.#revised(object));
  }

  #store(place: Place, object: JsonRecord): ApiObject {
    const before = this.#objects.get(keyOf(place));
    const stored = this.#revised({
      ...object,
      metadata: {
        uid: randomUUID(),
        creationTimestamp: timestamp(Date.now()),
        ...before?.metadata,
        ...record(object.metadata),
      },
    });
    this.#objects.set(keyOf(place), stored);
    this.#tell(before === undefined ? 'ADDED' : 'MODIFIED', place, stored);
    this.#stored.emit({ plural: place.plural, object: stored });
    return stored;
  }

  #revised(object: JsonRecord): ApiObject {
    this.#revision += 1;
    return { ...object, metadata: { ...record(object.metadata), resourceVersion: String(this.#revision) } };
  }

  #tell(type: string, place: Place, object: ApiObject): void {
    for (const watcher of this.#watchers)
      if (isIn(watcher.place, place) && watcher.matches(object))
        watcher.response.write(`${JSON.stringify({ type, object })}\n`);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, search, searchParams } = new URL(request.url ?? '/', 'http://emulated');
    const [, pod, path] = PROXY.exec(pathname) ?? [];
    if (pod !== undefined) return this.#forward(pod, `${path ?? ''}${search}`, response);
    const discovered = request.method === 'GET' ? discoveryOf(this.served, pathname) : null;
    if (discovered !== null) return send(response, 200, discovered);
    const { plural = '', namespace = '', name = '' } = PATH.exec(pathname)?.groups ?? {};
    const place = { plural, namespace, name };
    if (plural === '') return send(response, 404, failureStatus(404, 'NotFound'));
    if (name === '' && request.method === 'GET') return this.#answerCollection(place, searchParams, response);
    const body = request.method === 'GET' ? {} : record(JSON.parse((await bodyOf(request)) || '{}') as unknown);
    const known = this.#objects.get(keyOf(place));
    // Nothing would end or make the pods of a workload that a person stops or resumes.
    if (plural === 'selfsubjectaccessreviews')
      return send(response, 201, { ...body, status: { allowed: false, reason: 'no controller runs in the demo' } });
    if (request.method === 'POST') {
      const created = text(record(body.metadata).name) || `${plural}-${this.#revision}`;
      send(
        response,
        201,
        this.#store(
          { ...place, name: created },
          { ...body, metadata: { namespace, ...record(body.metadata), name: created } },
        ),
      );
    } else if (known === undefined) send(response, 404, failureStatus(404, 'NotFound'));
    else if (request.method === 'PUT') send(response, 200, this.#store(place, body));
    else if (request.method === 'PATCH') send(response, 200, this.#store(place, merged(known, body)));
    else if (request.method === 'DELETE') {
      this.remove(plural, namespace, name);
      send(response, 200, known);
    } else send(response, 200, { ...this.#typeOf(plural), ...known });
  }

  /** What an API server adds to an object of a resource. */
  #typeOf(plural: string): object {
    const served = this.served.find((each) => each.plural === plural);
    if (served === undefined) return {};
    const { group, version, kind } = served;
    return { apiVersion: group === '' ? version : `${group}/${version}`, kind };
  }

  async #forward(pod: string, path: string, response: ServerResponse): Promise<void> {
    const port = this.reach(pod);
    if (port === null) return send(response, 503, failureStatus(503, 'ServiceUnavailable'));
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/${path}`);
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    } catch (error) {
      send(response, 503, { ...failureStatus(503, 'ServiceUnavailable'), message: (error as Error).message });
    }
  }

  #answerCollection(place: Place, query: URLSearchParams, response: ServerResponse): void {
    const hasFields = matcher(query.get('fieldSelector') ?? '', (object, path) =>
      path.split('.').reduce<unknown>((parent, key) => record(parent)[key], object),
    );
    const hasLabels = matcher(query.get('labelSelector') ?? '', ({ metadata }, key) => record(metadata.labels)[key]);
    const matches = (object: ApiObject): boolean => hasFields(object) && hasLabels(object);
    const items = [...this.#objects].flatMap(([key, object]) =>
      isIn(place, placeOf(key)) && matches(object) ? object : [],
    );
    if (query.get('watch') !== 'true')
      return send(response, 200, { metadata: { resourceVersion: String(this.#revision) }, items });
    const since = Number(query.get('resourceVersion') ?? 0);
    const watcher = { place, matches, response };
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    // Deletions between list and watch are not kept: nothing is deleted while an agent of the simulation starts.
    for (const object of items)
      if (Number(object.metadata['resourceVersion']) > since)
        response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
  }
}

/** The proxy of an API server to a pod. */
const PROXY = /\/pods\/(?:https?:)?([^/:]+)(?::\d+)?\/proxy\/(.*)$/u;

const keyOf = ({ plural, namespace, name }: Place): string => `${plural}/${namespace}/${name}`;

function placeOf(key: string): Place {
  const [plural = '', namespace = '', name = ''] = key.split('/');
  return { plural, namespace, name };
}

/** Whether an object is in a collection. */
function isIn(collection: Place, object: Place): boolean {
  return collection.plural === object.plural && ['', object.namespace].includes(collection.namespace);
}

/** A selector `a=b,c=d` of what `find` finds in an object; what is absent equals the empty text. */
function matcher(selector: string, find: (object: ApiObject, key: string) => unknown): (object: ApiObject) => boolean {
  const wanted = selector.split(',').flatMap((term) => {
    const [key = '', value = ''] = term.split('=');
    return key === '' ? [] : [{ key, value }];
  });
  return (object) => wanted.every(({ key, value }) => text(find(object, key)) === value);
}

/** RFC 7396. */
function merged(target: unknown, patch: unknown): JsonRecord {
  const result: Record<string, unknown> = { ...record(target) };
  for (const [key, value] of Object.entries(record(patch))) {
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? merged(result[key], value) : value;
  }
  return result;
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && list(value) !== value;

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const failureStatus = (code: number, reason: string): object => ({
  kind: 'Status',
  status: 'Failure',
  code,
  reason,
  message: reason,
});
