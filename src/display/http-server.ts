import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../host/log.js';
import { omitDefaults, usageResponse } from './answers.js';
import { nodeMetrics, type MetricsText } from './metrics.js';
import type { NodeView } from './view.js';

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** The HTTP side of the display: the original's gateway routes, metrics and probes. Read-only. */
export class HttpServer {
  readonly #address: string;
  readonly #port: number;
  readonly #view: NodeView;
  readonly #metrics: MetricsText;
  readonly #server: Server;

  constructor(address: string, port: number, view: NodeView, log: Log) {
    this.#address = address;
    this.#port = port;
    this.#view = view;
    this.#metrics = nodeMetrics(view);
    this.#server = createServer((request, response) => {
      this.#answer(request).then(
        (answer) => send(response, answer),
        (error: unknown) => {
          log.error({ err: error, url: request.url }, 'an HTTP request failed');
          send(response, { status: 500, type: TEXT_TYPE, body: 'internal error\n' });
        },
      );
    });
  }

  /** The port in use: of interest where 0 was asked for. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Rejects when the address cannot be listened on. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, this.#address, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, type: TEXT_TYPE, body: 'only GET\n' };
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    switch (pathname) {
      case '/graph':
        return json({ graph: this.#view.graph() });
      case '/usage':
        return json(usageResponse(this.#view.containers()));
      case '/version':
        return json({ version: this.#view.version });
      case '/metric':
      case '/metrics':
        return { status: 200, type: this.#metrics.contentType, body: await this.#metrics.text() };
      case '/healthz':
        return { status: 200, type: TEXT_TYPE, body: 'ok\n' };
      case '/readyz': {
        const waiting = this.#view.notReady();
        return waiting.length === 0 ? { status: 200, type: TEXT_TYPE, body: 'ok\n' } : { status: 503, type: TEXT_TYPE, body: `${waiting.join('\n')}\n` };
      }
      default:
        return { status: 404, type: TEXT_TYPE, body: 'not found\n' };
    }
  }
}

function json(message: object): Answer {
  return { status: 200, type: JSON_TYPE, body: JSON.stringify(omitDefaults(message)) };
}

function send(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, { 'content-type': answer.type, 'content-length': Buffer.byteLength(answer.body) });
  response.end(answer.body);
}
