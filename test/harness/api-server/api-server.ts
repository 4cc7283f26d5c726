import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { interfere, send, truncate } from './answer.js';
import { accountToken } from './account-token.js';
import { ApiFailure, badRequest } from './api-failure.js';
import { parseBody, parseObject, readBody, readRequest, type ApiRequest, type Verb } from './api-request.js';
import { customTypes } from './custom-resource.js';
import { discover } from './discovery.js';
import { Faults, type Fault, type FaultEffect, type FaultMatch } from './fault.js';
import type { Json, KubeObject } from './kube-object.js';
import { inView, metadataView, type MetadataView } from './metadata-only.js';
import { newObject } from './object-rules.js';
import { ObjectStore } from './object-store.js';
import { forwardToPod, readProxiedPod, type ProxiedPod } from './pod-proxy.js';
import { BUILT_IN, resourceName, type ResourceType } from './resource-type.js';
import { reviewed, type Reviews } from './reviews.js';
import { Resources, type Admission, type Target } from './resources.js';
import { fieldSelector, labelSelector, type Predicate } from './selector.js';
import { WatchStream } from './watch-stream.js';

export interface ApiServerOptions {
  /**
   * Serves HTTPS with this certificate (PEM), and plain HTTP without. With `clientCa`, a certificate that this
   * authority signed authenticates a client.
   */
  readonly tls?: { readonly key: string; readonly certificate: string; readonly clientCa?: string };
  /** Bearer token -> user name. Without it every client is `system:anonymous` and allowed. */
  readonly tokens?: ReadonlyMap<string, string>;
  /** False refuses with 403. */
  readonly authorize?: (user: string, request: ApiRequest) => boolean;
  /** Answers TokenReviews, SubjectAccessReviews and those about the caller; without it they are unknown paths. */
  readonly reviews?: Reviews;
  /** Real servers send a bookmark about once a minute. */
  readonly bookmarkPeriodMs?: number;
  /** Number of changes that a watch can resume from. */
  readonly historyLimit?: number;
  /** False: requests are not recorded, so that a long benchmark does not fill the memory. */
  readonly recordsRequests?: boolean;
  /** Milliseconds since 1970, for the times in metadata. */
  readonly now?: () => number;
}

/** A received request, recorded for tests. */
export interface SeenRequest {
  readonly verb: Verb;
  /** Plural. */
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string | null;
  readonly name: string | null;
  readonly query: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly user: string;
  readonly body: string;
  /** Milliseconds, monotonic. */
  readonly at: number;
}

/**
 * A small Kubernetes API server for tests: real HTTP(S), resourceVersions, list and watch, patches, subresources,
 * admission, any resource - and configurable faults. README.md in this folder lists its limits.
 */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #store: ObjectStore;
  readonly #resources: Resources;
  readonly #faults = new Faults();
  readonly #streams = new Set<WatchStream>();
  readonly #sockets = new Set<Socket>();
  readonly #now: () => number;
  #types: readonly ResourceType[] = BUILT_IN;
  #server: Server | null = null;
  #port = 0;
  #bookmarks: NodeJS.Timeout | null = null;
  #thawed: Promise<void> | null = null;
  #thaw: () => void = () => undefined;
  /** Port on this machine of a pod's HTTP server, for the proxy to pods; null if nothing listens. */
  reach: (pod: ProxiedPod) => number | null = () => null;
  /** Every request since the start, oldest first. */
  readonly requests: SeenRequest[] = [];
  /** Number of answered reviews. */
  reviewed = 0;

  constructor(options: ApiServerOptions = {}) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#store = new ObjectStore({ firstRevision: 1000, historyLimit: options.historyLimit ?? 10_000 });
    this.#resources = new Resources(this.#store, () => this.#types, this.#now);
    this.#store.subscribe((change) => {
      if (change.type.kind === 'CustomResourceDefinition' && change.event !== 'DELETED')
        this.define(...customTypes(change.object));
      for (const stream of this.#streams) stream.deliver(change);
      if (change.type.kind === 'CustomResourceDefinition' && change.event === 'DELETED')
        this.#undefine(customTypes(change.object));
    });
  }

  // --- life -------------------------------------------------------------------------------------------------------

  /** Listens on a free port of the loopback interface, and after `stop` on the same port again. */
  async start(): Promise<void> {
    const { tls } = this.#options;
    const handle = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    const server =
      tls === undefined
        ? createHttpServer(handle)
        : createHttpsServer(
            {
              key: tls.key,
              cert: tls.certificate,
              ca: tls.clientCa,
              requestCert: tls.clientCa !== undefined,
              rejectUnauthorized: false,
            },
            handle,
          );
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#bookmarks = setInterval(() => this.sendBookmarks(), this.#options.bookmarkPeriodMs ?? 60_000);
    this.#bookmarks.unref();
  }

  /**
   * Stops the server: every connection breaks and new ones are refused. Objects, history and port survive until the
   * next `start`.
   */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    if (this.#bookmarks !== null) clearInterval(this.#bookmarks);
    this.thaw();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#streams.clear();
    await closed;
  }

  /**
   * Freezes the server, as a stopped process or a network that drops packets: connections stay open without answers.
   */
  freeze(): void {
    if (this.#thawed !== null) return;
    this.#thawed = new Promise((resolve) => (this.#thaw = resolve));
    for (const stream of this.#streams) stream.hold();
  }

  /** Processes everything that was held back. */
  thaw(): void {
    this.#thawed = null;
    this.#thaw();
    for (const stream of this.#streams) stream.release();
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.#port}`;
  }

  // --- faults -----------------------------------------------------------------------------------------------------

  /** Makes requests fail; see fault.ts. */
  inject(match: FaultMatch, effect: FaultEffect, times?: number): Fault {
    return this.#faults.add(match, effect, times);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  /** Open watches, optionally of one resource. */
  watches(plural?: string): WatchStream[] {
    return [...this.#streams].filter((stream) => plural === undefined || stream.type.plural === plural);
  }

  sendBookmarks(): void {
    for (const stream of this.#streams) stream.bookmark(this.#store.revision);
  }

  /** Drops the history: resuming a watch answers 410, and so do the continue tokens of lists. */
  compact(): void {
    this.#store.compact();
    this.#resources.expirePages();
  }

  /** Restarts resourceVersions at a lower number, as after a restored backup. */
  rewind(revision: number): void {
    this.#store.rewindRevision(revision);
  }

  /** Called before every change; null admits it. */
  set admission(admission: Admission | null) {
    this.#resources.admission = admission;
  }

  // --- objects, past all rules and faults -------------------------------------------------------------------------

  /** Adds resources; a newer definition of the same one replaces the older. */
  define(...types: readonly ResourceType[]): void {
    const same = (a: ResourceType, b: ResourceType): boolean =>
      a.group === b.group && a.version === b.version && a.plural === b.plural;
    const added = types.filter((type) => !this.#types.some((known) => same(known, type)));
    this.#types = [...this.#types, ...added];
  }

  /** Removes resources with all their objects; their watches end. */
  #undefine(types: readonly ResourceType[]): void {
    const gone = this.#types.filter((type) =>
      types.some(
        ({ group, version, plural }) => group === type.group && version === type.version && plural === type.plural,
      ),
    );
    for (const type of gone) for (const object of this.#store.list(type, null)) this.#store.remove(type, object);
    this.#types = this.#types.filter((type) => !gone.includes(type));
    for (const stream of this.#streams) if (gone.includes(stream.type)) stream.end();
  }

  /** Adds an object unchanged, status and uid included; `resource` is `pods` or `deployments.apps`. */
  seed(resource: string, object: KubeObject): KubeObject {
    const type = this.#typeOf(resource);
    return this.#store.put(
      type,
      newObject(type, object.metadata.namespace ?? 'default', structuredClone(object), this.#now(), true),
    );
  }

  read(resource: string, namespace: string, name: string): KubeObject | null {
    return this.#store.get(this.#typeOf(resource), namespace, name);
  }

  all(resource: string): KubeObject[] {
    return this.#store.list(this.#typeOf(resource), null);
  }

  /** Changes an object past all rules; throws where there is none. */
  edit(resource: string, namespace: string, name: string, change: (object: KubeObject) => KubeObject): KubeObject {
    const type = this.#typeOf(resource);
    return this.#store.put(type, change(this.#resources.get({ type, namespace, name, subresource: '' })));
  }

  /** Removes an object at once; false where there is none. */
  remove(resource: string, namespace: string, name: string): boolean {
    const type = this.#typeOf(resource);
    const object = this.#store.get(type, namespace, name);
    if (object !== null) this.#store.remove(type, object);
    return object !== null;
  }

  get revision(): number {
    return this.#store.revision;
  }

  #typeOf(resource: string): ResourceType {
    const type = this.#types.find((entry) => entry.plural === resource || resourceName(entry) === resource);
    if (type === undefined) throw new Error(`no resource ${resource}`);
    return type;
  }

  // --- requests ---------------------------------------------------------------------------------------------------

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    response.setHeader('date', new Date(this.#now()).toUTCString());
    try {
      const body = await readBody(incoming);
      while (this.#thawed !== null) await this.#thawed;
      if (this.#server === null) return;
      await this.#answer(incoming, response, body);
    } catch (error) {
      if (response.headersSent) return void response.destroy();
      const failure = error instanceof ApiFailure ? error : new ApiFailure(500, 'InternalError', String(error));
      send(response, failure.code, failure.status, failure.headers);
    }
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://server');
    const user = this.#userOf(incoming);
    const review =
      this.#options.reviews === undefined ? null : reviewed(this.#options.reviews, url.pathname, body, user);
    if (review !== null) {
      this.reviewed += 1;
      return send(response, 201, review);
    }
    const discovered = discover(this.#types, url.pathname);
    if (discovered !== null) return send(response, 200, discovered);
    const request = readRequest(this.#types, incoming.method ?? 'GET', url);
    if (request === null) throw new ApiFailure(404, 'NotFound', 'the server could not find the requested resource');
    const contentType = incoming.headers['content-type'] ?? '';
    const view = metadataView(incoming.headers.accept);
    if (this.#options.recordsRequests !== false)
      this.requests.push({
        verb: request.verb,
        resource: request.type.plural,
        subresource: request.subresource,
        namespace: request.namespace,
        name: request.name,
        query: Object.fromEntries(request.query),
        contentType,
        user,
        body,
        at: performance.now(),
      });
    if (this.#options.authorize?.(user, request) === false) {
      const where = request.namespace === null ? 'at the cluster scope' : `in the namespace "${request.namespace}"`;
      throw new ApiFailure(
        403,
        'Forbidden',
        `${resourceName(request.type)} is forbidden: User "${user}" cannot ${request.verb} resource "${request.type.plural}" in API group "${request.type.group}" ${where}`,
      );
    }

    const fault = this.#faults.take(request);
    if (fault !== null && (await interfere(fault, response))) return;
    const distort = fault?.do === 'distort' ? fault.change : null;
    if (request.type.plural === 'pods' && request.subresource.startsWith('proxy')) {
      const pod = readProxiedPod(request.namespace ?? '', request.name ?? '');
      this.#resources.get({ type: request.type, namespace: pod.namespace, name: pod.name, subresource: '' });
      const path = `${request.subresource.slice('proxy'.length) || '/'}${url.search}`;
      return forwardToPod(incoming, response, pod, this.reach(pod), path);
    }
    if (request.verb === 'watch') return this.#watch(request, response, view, distort);

    const performed = await this.#perform(request, contentType, body);
    const { code } = performed;
    // A deletion may answer with a Status, which has no metadata view.
    const answer = request.verb.startsWith('delete') ? performed.answer : inView(view, performed.answer);
    if (fault?.do === 'lose-answer') return void response.socket?.destroy();
    if (fault?.do === 'truncate') return truncate(response, answer);
    send(response, code, distort === null ? answer : distort(answer as Json));
  }

  async #perform(request: ApiRequest, contentType: string, body: string): Promise<{ code: number; answer: unknown }> {
    const { type, dryRun, subresource } = request;
    const target: Target = { type, namespace: request.namespace ?? '', name: request.name ?? '', subresource };
    if (request.name !== null && type.namespaced && request.namespace === null)
      throw new ApiFailure(404, 'NotFound', 'the server could not find the requested resource');
    switch (request.verb) {
      case 'get':
        return { code: 200, answer: this.#resources.get(target) };
      case 'list':
        return { code: 200, answer: this.#resources.list(type, request.namespace, selectorOf(request), request.query) };
      case 'create':
        if (subresource === 'eviction')
          return { code: 201, answer: await this.#resources.evict(target, parseObject(body), dryRun) };
        if (subresource === 'token')
          return {
            code: 201,
            answer: accountToken(this.#resources.get({ ...target, subresource: '' }), parseObject(body), this.#now()),
          };
        if (subresource === 'binding')
          return { code: 201, answer: await this.#resources.bind(target, parseObject(body), dryRun) };
        return { code: 201, answer: await this.#resources.create(target, objectOf(body), dryRun) };
      case 'update':
        return { code: 200, answer: await this.#resources.update(target, objectOf(body), dryRun) };
      case 'patch':
        return { code: 200, answer: await this.#resources.patch(target, contentType, parseBody(body), dryRun) };
      case 'delete':
        return { code: 200, answer: await this.#resources.delete(target, parseObject(body), dryRun) };
      case 'deletecollection': {
        const objects = this.#store.list(type, request.namespace).filter(selectorOf(request));
        for (const { metadata } of objects)
          await this.#resources.delete(
            { ...target, namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
            parseObject(body),
            dryRun,
          );
        return { code: 200, answer: { kind: `${type.kind}List`, apiVersion: 'v1', metadata: {}, items: objects } };
      }
      default:
        throw badRequest(`no ${request.verb} here`);
    }
  }

  #watch(
    request: ApiRequest,
    response: ServerResponse,
    view: MetadataView | null,
    distort: ((event: Json) => unknown) | null,
  ): void {
    const { type, namespace, query } = request;
    const matches = selectorOf(request);
    const from = query.get('resourceVersion') ?? '';
    const stream = new WatchStream({
      response,
      type,
      namespace,
      matches,
      after: Number(from),
      bookmarks: query.get('allowWatchBookmarks') === 'true',
      view,
      distort,
    });
    response.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    response.flushHeaders();
    if (from === '' || from === '0') stream.begin(this.#store.list(type, namespace));
    else {
      try {
        for (const change of this.#store.changesSince(type, Number(from))) stream.deliver(change);
      } catch {
        // By then the real server has answered 200, too.
        return stream.expire();
      }
    }
    this.#streams.add(stream);
    const timeoutSeconds = Number(query.get('timeoutSeconds') ?? 0);
    const timer = timeoutSeconds > 0 ? setTimeout(() => stream.end(), timeoutSeconds * 1000).unref() : undefined;
    response.on('close', () => {
      clearTimeout(timer);
      this.#streams.delete(stream);
    });
  }

  #userOf(incoming: IncomingMessage): string {
    const { tokens, tls } = this.#options;
    const socket = incoming.socket as TLSSocket;
    if (tls?.clientCa !== undefined && socket.authorized) {
      // A resumed session counts as authorized even if it has no certificate.
      const peer = socket.getPeerCertificate() as { readonly subject?: { readonly CN: string } };
      if (peer.subject !== undefined) return peer.subject.CN;
    }
    if (tokens === undefined) return 'system:anonymous';
    const token = /^Bearer (.+)$/.exec(incoming.headers.authorization ?? '')?.[1] ?? '';
    const user = tokens.get(token);
    if (user === undefined) throw new ApiFailure(401, 'Unauthorized', 'Unauthorized');
    return user;
  }
}

function selectorOf(request: ApiRequest): Predicate {
  const byField = fieldSelector(request.type, request.query.get('fieldSelector') ?? '');
  const byLabel = labelSelector(request.query.get('labelSelector') ?? '');
  return (object) =>
    (request.name === null || object.metadata.name === request.name) && byField(object) && byLabel(object);
}

function objectOf(body: string): KubeObject {
  const object = parseObject(body);
  return { ...object, metadata: (object.metadata ?? {}) as KubeObject['metadata'] };
}
