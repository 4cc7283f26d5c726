import { json, jsonText, plain, RefusedRequest, type Answer } from '../http/answer.js';
import { Listener, type HttpRequest, type Route } from '../http/listener.js';
import { authorizationOf } from '../http/token-access.js';
import type { TlsSource } from '../http/tls.js';
import type { Log } from '../host/log.js';
import { record, text, type JsonRecord } from '../kube/json.js';
import type { PageFile } from '../page/page-files.js';
import { pageRoutes } from '../page/page-routes.js';
import { PAGE_POLICY } from '../page/page-policy.js';
import type { ClusterFeed } from './cluster-feed.js';
import type { ClusterModel } from './cluster-model.js';
import { csv } from './csv.js';
import type { Explanations } from './explanations.js';
import { USAGE_BY, usageCells, usageHeadings } from './gpu-hours.js';
import type { History } from './history.js';
import type { NodeDocuments } from './node-documents.js';
import type { Reader, Readers } from './readers.js';
import type { Shapes } from './shapes.js';
import { isBlind, sees, type Scope } from './scope.js';
import type { Usage } from './usage.js';
import { switchState, switchWorkload, type WorkloadName } from './workload-switch.js';

export interface ConsoleServerOptions {
  readonly address: string;
  readonly port: number;
  readonly model: ClusterModel;
  readonly feed: ClusterFeed;
  readonly readers: Readers;
  readonly documents: NodeDocuments;
  readonly explanations: Explanations;
  readonly shapes: Shapes;
  readonly usage: Usage;
  /** Null without Prometheus. */
  readonly history: History | null;
  readonly notReady: () => readonly string[];
  /** Files of the page, by URL path. */
  readonly page: ReadonlyMap<string, PageFile>;
  /** Null: plain HTTP. */
  readonly certificate: TlsSource | null;
  readonly log: Log;
}

/** The rows of 5,000 nodes are 13 MiB, and readers of other namespaces get others. A body names a workload. */
const LIMITS = { unreadBytes: 32 << 20, bodyBytes: 4 << 10, bodiesBytes: 1 << 20 };

/** The HTTP side of the console: the page and its data, each for its reader. It changes only what a reader asks for. */
export class ConsoleServer {
  readonly #options: ConsoleServerOptions;
  readonly #listener: Listener;

  constructor(options: ConsoleServerOptions) {
    this.#options = options;
    const { address, port, certificate: tls, notReady, log } = options;
    const routes = this.#routes();
    this.#listener = new Listener({
      ...{ address, port, tls, notReady, log },
      headers: PAGE_POLICY,
      limits: LIMITS,
      route: (path) => routes.get(path) ?? null,
    });
  }

  /** The port in use, which matters if port 0 was requested. */
  get port(): number {
    return this.#listener.port;
  }

  async start(): Promise<void> {
    await this.#listener.start();
    this.#options.feed.start();
  }

  async stop(): Promise<void> {
    this.#options.feed.stop();
    await this.#listener.stop(0);
  }

  #routes(): ReadonlyMap<string, Route> {
    const { model, feed, page, documents, explanations, shapes, usage, history, log } = this.#options;
    return new Map([
      ...pageRoutes(page),
      this.#data('/api/cluster', async (scope) => jsonText(await feed.rows(scope))),
      this.#data('/api/stream', (scope, reader) => ({
        status: 200,
        type: 'text/event-stream',
        body: '',
        headers: { 'x-accel-buffering': 'no' },
        stream: (response) => {
          if (!feed.join(response, reader, scope)) response.end('event: busy\ndata: {}\n\n');
        },
      })),
      this.#data('/api/node', async (scope, { name: user }, { query }) => {
        const name = query.get('name') ?? '';
        if (!scope.tables.has('nodes')) return plain(403, `${user} may not list nodes`);
        if (model.node(name) === null) return plain(404, 'no node of this name has GPUs of gpu-manager');
        return json(await documents.read(name, scope));
      }),
      this.#data('/api/explain', async (scope, _reader, { query }) => {
        const pod = model.pod(query.get('pod') ?? '');
        if (pod === null || !sees(scope, 'pods', pod.namespace))
          return plain(404, 'no pod that you may see has this UID');
        return json(await explanations.read(pod.namespace, pod.name, scope));
      }),
      this.#data('/api/shapes', async (scope, _reader, { query }) => {
        const group = query.get('group');
        const unseen = (['nodes', 'pods', 'groups'] as const).filter((table) => !sees(scope, table, null));
        const needed = group === null ? ['nodes', 'pods'] : ['groups'];
        if (unseen.some((table) => needed.includes(table)))
          return json({ ok: false, reason: `you may not list all ${needed.join(' and ')}` });
        const seesPods = (namespace: string): boolean => sees(scope, 'pods', namespace);
        return json(await (group === null ? shapes.ofCluster() : shapes.ofGroup(group, seesPods)));
      }),
      this.#data('/api/workload', async (scope, { api }, { query }) => {
        const workload = workloadOf((key) => query.get(key));
        if (!sees(scope, 'pods', workload.namespace)) return plain(404, 'no workload that you may see has this name');
        return json(await switchState(api, workload));
      }),
      this.#changing('/api/workload/switch', async (scope, { api, name }, given) => {
        const workload = workloadOf((key) => text(given[key]));
        if (!sees(scope, 'pods', workload.namespace)) return plain(404, 'no workload that you may see has this name');
        if (typeof given.isStopped !== 'boolean') return plain(400, 'isStopped must be true or false');
        const answer = await switchWorkload(api, workload, given.isStopped);
        log.info({ user: name, ...workload, isStopped: given.isStopped, ...answer }, 'a workload was switched');
        return json(answer);
      }),
      this.#data('/api/usage', async (_scope, reader, { query }) => {
        const range = query.get('range') ?? '';
        const by = USAGE_BY.find((one) => one === query.get('by'));
        // Namespaces of which only ended pods are left count from then on.
        await usage.learn(range);
        const scope = await scopeOf(reader);
        const answer = by === undefined ? null : await usage.read(by, range, scope);
        if (by === undefined || answer === null)
          return plain(404, `there is usage by ${USAGE_BY.join(', ')}, for 24h, 7d or 30d`);
        if (query.get('format') !== 'csv' || !answer.ok) return json(answer);
        const hasGpus = answer.source === 'agents';
        const lines = answer.rows.map((row) => usageCells(row, hasGpus, ''));
        return { status: 200, type: 'text/csv; charset=utf-8', body: csv([usageHeadings(by, hasGpus), ...lines]) };
      }),
      this.#data('/api/history', async (scope, _reader, { query }) => {
        if (history === null) return plain(404, 'the console has no Prometheus: give it --prometheus-url');
        const [of, name, range] = ['of', 'name', 'range'].map((key) => query.get(key) ?? '') as [
          string,
          string,
          string,
        ];
        const answer = await history.read({ of, name, range }, scope);
        return answer === null ? plain(404, 'there is no history of it') : json(answer);
      }),
      this.#data('/api/whoami', ({ tables }, { name }) => {
        const seen = tables.get('pods') ?? [];
        return json({
          name,
          tables: [...tables.keys()],
          namespaces: tables.get('pods') === null ? null : [...seen].sort(),
        });
      }),
    ]);
  }

  /** A route whose answer depends on the caller. */
  #data(
    path: string,
    answer: (scope: Scope, reader: Reader, request: HttpRequest) => Answer | Promise<Answer>,
  ): [string, Route] {
    return [
      path,
      {
        method: 'GET',
        isOpen: true,
        answer: async (request) => {
          const { reader, scope } = await this.#readerOf(request);
          return answer(scope, reader, request);
        },
      },
    ];
  }

  /** A route that changes something with the rights of the caller. */
  #changing(
    path: string,
    answer: (scope: Scope, reader: Reader, given: JsonRecord) => Promise<Answer>,
  ): [string, Route] {
    return [
      path,
      {
        method: 'POST',
        isOpen: true,
        answer: async (request) => {
          // A page of another origin cannot send this type without asking first, and is refused then.
          if (request.headers['content-type'] !== 'application/json')
            return plain(415, 'the content type must be application/json');
          const { reader, scope } = await this.#readerOf(request);
          let given;
          try {
            given = record(JSON.parse(await request.body()));
          } catch (error) {
            if (error instanceof RefusedRequest) throw error;
            return plain(400, 'the body must be JSON');
          }
          return answer(scope, reader, given);
        },
      },
    ];
  }

  async #readerOf({ headers }: HttpRequest): Promise<{ readonly reader: Reader; readonly scope: Scope }> {
    const { readers, notReady } = this.#options;
    const answer = await readers.reader(authorizationOf(headers));
    if (answer.kind === 'unknown') throw UNKNOWN;
    if (answer.kind === 'unavailable') throw unavailable(answer.reason);
    const waiting = notReady();
    if (waiting.length > 0) throw new RefusedRequest(503, waiting.join('; '), { 'retry-after': '1' });
    const { reader } = answer;
    const scope = await scopeOf(reader);
    if (isBlind(scope))
      throw new RefusedRequest(
        403,
        `${reader.name} may list neither nodes, nor pods of a namespace with GPUs, nor anything else that the console shows`,
      );
    return { reader, scope };
  }
}

const UNKNOWN = new RefusedRequest(401, 'a bearer token of this cluster is required', { 'www-authenticate': 'Bearer' });

function unavailable(reason: string): RefusedRequest {
  return new RefusedRequest(503, `the token cannot be reviewed now: ${reason}`, { 'retry-after': '5' });
}

/** The tables that a reader may see now. Throws a `RefusedRequest`. */
async function scopeOf(reader: Reader): Promise<Scope> {
  const scope = await reader.scope();
  if (scope === 'unknown') throw UNKNOWN;
  if (scope === 'unavailable') throw unavailable('the API server does not answer');
  return scope;
}

function workloadOf(field: (key: string) => string | null): WorkloadName {
  return { kind: field('kind') ?? '', namespace: field('namespace') ?? '', name: field('name') ?? '' };
}
