import { json, jsonText, plain, type Answer } from '../../http/answer.js';
import { Listener, type HttpRequest, type Route } from '../../http/listener.js';
import { metricsRoute } from '../../http/probe-routes.js';
import { joined, sharedAnswer } from '../../http/shared-answer.js';
import type { TlsSource } from '../../http/tls.js';
import type { TokenAccess } from '../../http/token-access.js';
import type { Log } from '../../host/log.js';
import { usageResponse } from './answers.js';
import { gatewayJson } from './gateway-json.js';
import type { History } from './history.js';
import type { AllocationSnapshot, Journal, JournalEntry, NodeView, UseRecord } from '../node/index.js';
import type { LiveFeed } from './live-feed.js';
import type { Metrics } from '../../http/metrics.js';
import type { PageFile } from '../../page/page-files.js';
import { PAGE_POLICY } from '../../page/page-policy.js';
import { pageReadAtFirst } from '../../page/page-routes.js';

export interface HttpServerOptions {
  readonly address: string;
  readonly port: number;
  readonly view: NodeView;
  readonly metrics: Metrics;
  readonly history: History;
  readonly journal: Journal;
  readonly use: Pick<UseRecord, 'hours' | 'minutes'>;
  readonly feed: LiveFeed;
  /** Checks the node, for `kubectl gpu doctor`; null: not offered. Rejects if the checks cannot run. */
  readonly doctor?: (() => Promise<readonly unknown[]>) | null;
  /** Reads the files of the page, by URL path. */
  readonly page: () => Promise<ReadonlyMap<string, PageFile>>;
  /** Null: plain HTTP. */
  readonly certificate: TlsSource | null;
  /** Decides which requests may read the node's data; null: every request. */
  readonly access: TokenAccess | null;
  readonly log: Log;
}

const ALLOCATIONS = '/api/allocations/';

/** The HTTP side of the display: the original's gateway, metrics, probes, and the page with its data. Read-only. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #listener: Listener;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const { address, port, certificate: tls, access, log } = options;
    const routes = this.#routes();
    const pageRoute = pageReadAtFirst(options.page);
    this.#listener = new Listener({
      address,
      port,
      tls,
      access,
      log,
      headers: PAGE_POLICY,
      notReady: () => options.view.notReady(),
      route: (path) =>
        routes.get(path) ??
        pageRoute(path) ??
        (path.startsWith(ALLOCATIONS) ? this.#get(() => this.#allocation(path.slice(ALLOCATIONS.length))) : null),
    });
  }

  /** The port in use, which matters if port 0 was requested. */
  get port(): number {
    return this.#listener.port;
  }

  /** Rejects when the address cannot be used, or the certificate is invalid. */
  async start(): Promise<void> {
    await this.#listener.start();
    this.#options.feed.start();
  }

  async stop(): Promise<void> {
    this.#options.feed.stop();
    await this.#listener.stop(0);
  }

  #routes(): ReadonlyMap<string, Route> {
    const { view, metrics, journal, feed, use } = this.#options;
    const prometheus = metricsRoute(metrics);
    const graph = sharedAnswer(() => jsonText(gatewayJson({ graph: view.graph({ extended: false }) })));
    const extendedGraph = sharedAnswer(() => jsonText(gatewayJson({ graph: view.graph({ extended: true }) })));
    const usage = sharedAnswer(() =>
      jsonText(gatewayJson(usageResponse(view.snapshot(), (podUid) => view.pod(podUid)))),
    );
    const { doctor = null } = this.#options;
    const data: Readonly<Record<string, Route>> = {
      '/metrics': prometheus,
      '/metric': prometheus,
      '/graph': this.#get(({ query }) => (query.get('extended') === '1' ? extendedGraph() : graph())),
      '/usage': this.#get(usage),
      '/version': this.#get(() => jsonText(gatewayJson({ version: view.version }))),
      '/api/node': this.#get(sharedAnswer(() => json(view.snapshot()))),
      '/api/events': this.#get(({ query }) => {
        const events = journal.after(whole(query.get('after')));
        const pod = query.get('pod');
        const isIts = ({ owner }: JournalEntry): boolean =>
          owner !== undefined && `${owner.namespace}/${owner.pod}` === pod;
        return json({ events: pod === null ? events : events.filter(isIts) });
      }),
      '/api/use': this.#get(async ({ query }) => json(await use.hours(whole(query.get('since'))))),
      '/api/minutes': this.#get(({ query }) => {
        const [namespace = '', pod = ''] = (query.get('pod') ?? '').split('/');
        return json({ slices: use.minutes(namespace, pod, whole(query.get('since'))) });
      }),
      '/api/doctor': this.#get(
        doctor === null
          ? () => plain(404, 'this agent runs no checks: its node is simulated')
          : joined(doctorAnswer(doctor)),
      ),
      '/api/stream': this.#get(() => ({
        status: 200,
        type: 'text/event-stream',
        body: '',
        headers: { 'x-accel-buffering': 'no' },
        stream: (response) => {
          if (!feed.join(response)) response.end('event: busy\ndata: {}\n\n');
        },
      })),
    };
    return new Map(Object.entries(data));
  }

  #get(answer: (request: HttpRequest) => Answer | Promise<Answer>): Route {
    return { method: 'GET', answer };
  }

  #allocation(id: string): Answer {
    const { view, history, journal } = this.#options;
    const allocation = view.snapshot().allocations.find((one) => one.id === id);
    if (allocation === undefined) return plain(404, 'this allocation does not exist');
    const events = journal.after(0).filter((entry) => concerns(entry, allocation));
    return json({ allocation, series: history.slices(id), events });
  }
}

/**
 * Whether an event is about this allocation: by its container, or without one by its id and time. The id follows from
 * the GPU's ids alone, so earlier containers of other pods had the same.
 */
function concerns(
  { owner, allocation, atMs }: JournalEntry,
  { id, owners, allocatedAtMs }: AllocationSnapshot,
): boolean {
  const known = owners.filter(({ podUid }) => podUid !== '');
  if (owner !== undefined && owner.podUid !== '' && known.length > 0)
    return known.some(({ podUid, container }) => podUid === owner.podUid && container === owner.container);
  return allocation === id && atMs >= allocatedAtMs;
}

function doctorAnswer(doctor: () => Promise<readonly unknown[]>): () => Promise<Answer> {
  return () => doctor().then(json, (error: unknown) => plain(503, (error as Error).message));
}

function whole(text: string | null): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}
