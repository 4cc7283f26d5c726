import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { isLoopback, namesLoopback, type Access } from './access.js';
import { usageResponse } from './answers.js';
import type { CertificateFiles } from './certificate.js';
import { gatewayJson } from './gateway-json.js';
import type { History } from './history.js';
import { json, jsonText, plain, SAFE_HEADERS, type Answer } from './http-answer.js';
import type { Journal } from './journal.js';
import type { LiveFeed } from './live-feed.js';
import type { NodeMetrics } from './metrics.js';
import type { PageFile } from './page-files.js';
import type { NodeView } from './view.js';

export interface HttpServerOptions {
  readonly address: string;
  readonly port: number;
  readonly view: NodeView;
  readonly metrics: NodeMetrics;
  readonly history: History;
  readonly journal: Journal;
  readonly feed: LiveFeed;
  /** By path. */
  readonly page: ReadonlyMap<string, PageFile>;
  /** Null: plain HTTP. */
  readonly certificate: CertificateFiles | null;
  /** Who may read the node's data; null: everybody who reaches the port. */
  readonly access: Access | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** Scrapers, probes and pages of one node; more is a mistake or an attack. */
const MOST_CONNECTIONS = 256;

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** The HTTP side of the display: the original's gateway, metrics, probes, and the page with what it needs. Read-only. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server | HttpsServer;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const handle = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    this.#server = options.certificate === null ? createHttpServer(handle) : createHttpsServer(handle);
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /** The port in use: of interest where 0 was asked for. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Rejects when the address cannot be listened on, or the certificate cannot be used. */
  async start(): Promise<void> {
    const { address, port, certificate, clock, log } = this.#options;
    const server = this.#server;
    if (certificate !== null && 'setSecureContext' in server) {
      server.setSecureContext(await certificate.read());
      certificate.follow(clock, log, (pair) => server.setSecureContext(pair));
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, address, () => {
        server.off('error', reject);
        resolve();
      });
    });
    this.#options.feed.start();
  }

  async stop(): Promise<void> {
    this.#options.certificate?.stop();
    this.#options.feed.stop();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = new URL(request.url ?? '/', 'http://localhost');
      const answer =
        (await this.#refusal(request, url)) ??
        (url.pathname === '/api/stream' ? this.#stream(request, response) : await this.#answer(request, url));
      if (answer !== null) send(request, response, answer);
    } catch (error) {
      // What is wrong goes to the log: it may name what the caller should not know.
      this.#options.log.error({ err: error, url: request.url }, 'an HTTP request failed');
      if (response.headersSent) response.destroy();
      else send(request, response, plain(500, 'internal error'));
    }
  }

  /** Why the request is not answered; null when it is. */
  async #refusal(request: IncomingMessage, { pathname }: URL): Promise<Answer | null> {
    const { address, access, page } = this.#options;
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'only GET', { allow: 'GET, HEAD' });
    if (isLoopback(address) && !namesLoopback(request.headers.host))
      return plain(421, 'this server is known as localhost only');
    // The page itself says nothing of the node, and asks for a token where it needs one.
    if (access === null || PROBES.has(pathname) || page.has(pathname)) return null;
    const decision = await access.check(request.headers.authorization, pathname);
    switch (decision.kind) {
      case 'allowed':
        return null;
      case 'unknown':
        return plain(401, 'a bearer token of this cluster is needed', { 'www-authenticate': 'Bearer' });
      case 'forbidden':
        return plain(403, `${decision.user} may not get the non-resource URL ${pathname}`);
      case 'unavailable':
        return plain(503, `the cluster cannot be asked about the token: ${decision.reason}`, { 'retry-after': '5' });
    }
  }

  async #answer(request: IncomingMessage, { pathname, searchParams }: URL): Promise<Answer> {
    const { view, metrics, journal, page } = this.#options;
    const file = page.get(pathname);
    if (file !== undefined) return pageAnswer(request, file);
    switch (pathname) {
      case '/graph':
        return jsonText(gatewayJson({ graph: view.graph({ extended: searchParams.get('extended') === '1' }) }));
      case '/usage':
        return jsonText(gatewayJson(usageResponse(view.snapshot(), (podUid) => view.pod(podUid))));
      case '/version':
        return jsonText(gatewayJson({ version: view.version }));
      case '/metric':
      case '/metrics':
        return { status: 200, type: metrics.contentType, body: await metrics.text() };
      case '/healthz':
        return plain(200, 'ok');
      case '/readyz': {
        const waiting = view.notReady();
        return waiting.length === 0 ? plain(200, 'ok') : plain(503, waiting.join('\n'));
      }
      case '/api/node':
        return json(view.snapshot());
      case '/api/events':
        return json({ events: journal.after(whole(searchParams.get('after'))) });
      default:
        return pathname.startsWith('/api/allocations/')
          ? this.#allocation(pathname.slice('/api/allocations/'.length))
          : plain(404, 'not found');
    }
  }

  #allocation(id: string): Answer {
    const { view, history, journal } = this.#options;
    const allocation = view.snapshot().allocations.find((one) => one.id === id);
    if (allocation === undefined) return plain(404, 'no such allocation');
    const concerns = (owner: ContainerRef | undefined): boolean =>
      owner !== undefined &&
      owner.podUid !== '' &&
      allocation.owners.some(({ podUid, container }) => podUid === owner.podUid && container === owner.container);
    const events = journal.after(0).filter((entry) => entry.allocation === id || concerns(entry.owner));
    return json({ allocation, series: history.slices(id), events });
  }

  #stream(request: IncomingMessage, response: ServerResponse): Answer | null {
    if (request.method !== 'GET') return plain(405, 'only GET', { allow: 'GET' });
    response.writeHead(200, {
      ...SAFE_HEADERS,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    if (!this.#options.feed.join(response)) response.end('event: busy\ndata: {}\n\n');
    return null;
  }
}

function pageAnswer(request: IncomingMessage, { type, body, etag }: PageFile): Answer {
  const headers = { etag, 'cache-control': 'no-cache' };
  return request.headers['if-none-match'] === etag
    ? { status: 304, type, body: '', headers }
    : { status: 200, type, body, headers };
}

function whole(text: string | null): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, headers }: Answer): void {
  const length = status === 304 ? {} : { 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, {
    ...SAFE_HEADERS,
    'cache-control': 'no-store',
    'content-type': type,
    ...length,
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
