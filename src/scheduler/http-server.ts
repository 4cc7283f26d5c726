import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Log } from '../host/log.js';
import { BadArguments, readBindingArguments, readExtenderArguments, readPreemptionArguments } from './arguments.js';
import type { ExtenderService } from './extender-service.js';
import type { ExtenderMetrics } from './decision-metrics.js';
import { filterError } from './results.js';

/** PEM texts. With `clientCa`, callers have to show a certificate signed by it. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | null;
}

export interface HttpServerOptions {
  readonly address: string;
  readonly port: number;
  readonly tls: TlsMaterial | null;
  readonly version: string;
  /** Why scheduling cannot be answered yet; null once it can. */
  readonly notReady: () => string | null;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** One verb of the scheduler. */
interface Verb {
  readonly name: string;
  readonly answer: (body: string) => unknown;
  /** What tells the scheduler of an error in this verb's own words; null where only the HTTP status can. */
  readonly failure: ((reason: string) => unknown) | null;
  readonly failed: (answer: unknown) => boolean;
}

/** Five thousand whole nodes are about half of this. */
const MAX_BODY_BYTES = 128 * 1024 * 1024;

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** The scheduler's door: `POST /scheduler/<verb>`, and GET of version, probes and metrics. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #metrics: ExtenderMetrics;
  readonly #log: Log;
  readonly #server: Server;
  readonly #verbs: ReadonlyMap<string, Verb>;

  constructor(options: HttpServerOptions, service: ExtenderService, metrics: ExtenderMetrics, log: Log) {
    this.#options = options;
    this.#metrics = metrics;
    this.#log = log;
    this.#verbs = verbsOf(service);
    const { tls } = options;
    const handle = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    this.#server =
      tls === null
        ? createHttpServer(handle)
        : createHttpsServer(
            {
              cert: tls.cert,
              key: tls.key,
              ...(tls.clientCa === null ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
            },
            handle,
          );
  }

  /** The port in use: of interest where 0 was asked for. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Rejects when the address cannot be listened on. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  /** Lets calls that are being answered finish; those that take too long are cut. */
  async stop(graceMs = 2000): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await closed;
    clearTimeout(cut);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { pathname } = new URL(request.url ?? '/', 'http://localhost');
      const verb = this.#verbs.get(pathname);
      if (verb !== undefined) send(response, await this.#call(verb, request));
      else send(response, await this.#read(pathname, request.method ?? 'GET'));
    } catch (error) {
      this.#log.error({ err: error, url: request.url }, 'a request failed');
      if (!response.headersSent) send(response, text(500, 'internal error'));
      else response.destroy();
    }
  }

  async #call(verb: Verb, request: IncomingMessage): Promise<Answer> {
    if (request.method !== 'POST') return text(405, 'only POST');
    const started = performance.now();
    const answered = (result: 'ok' | 'error'): void =>
      this.#metrics.answered(verb.name, result, (performance.now() - started) / 1000);
    const fail = (status: number, reason: string): Answer => {
      answered('error');
      this.#log.warn({ verb: verb.name, reason }, 'a call of the scheduler was answered with an error');
      return verb.failure === null ? text(status, reason) : json(verb.failure(reason));
    };
    const body = await readBody(request);
    if (body === null) return fail(413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
    const notReady = this.#options.notReady();
    if (notReady !== null) return fail(503, notReady);
    try {
      const answer = await verb.answer(body);
      answered(verb.failed(answer) ? 'error' : 'ok');
      return json(answer);
    } catch (error) {
      if (error instanceof BadArguments) return fail(400, error.message);
      throw error;
    }
  }

  async #read(pathname: string, method: string): Promise<Answer> {
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'only GET');
    switch (pathname) {
      case '/version':
        return text(200, this.#options.version);
      case '/healthz':
        return text(200, 'ok');
      case '/readyz': {
        const reason = this.#options.notReady();
        return reason === null ? text(200, 'ok') : text(503, reason);
      }
      case '/metrics':
        return { status: 200, type: this.#metrics.contentType, body: await this.#metrics.text() };
      default:
        return text(404, 'not found');
    }
  }
}

function verbsOf(service: ExtenderService): Map<string, Verb> {
  const hasError = (answer: unknown): boolean => (answer as { Error?: string }).Error !== '';
  const verbs: Record<string, Verb> = {
    predicates: {
      name: 'filter',
      answer: (body) => service.filter(readExtenderArguments(body)),
      failure: filterError,
      failed: hasError,
    },
    prioritize: {
      name: 'prioritize',
      answer: (body) => service.prioritize(readExtenderArguments(body)),
      failure: null,
      failed: () => false,
    },
    bind: {
      name: 'bind',
      answer: (body) => service.bind(readBindingArguments(body)),
      failure: (Error) => ({ Error }),
      failed: hasError,
    },
    preempt: {
      name: 'preempt',
      answer: (body) => service.preempt(readPreemptionArguments(body)),
      failure: null,
      failed: () => false,
    },
  };
  return new Map(Object.entries(verbs).map(([path, verb]) => [`/scheduler/${path}`, verb]));
}

/** Null when the body is too large; what comes beyond is not kept. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}

function json(value: unknown): Answer {
  return { status: 200, type: JSON_TYPE, body: JSON.stringify(value) };
}

function text(status: number, body: string): Answer {
  return { status, type: TEXT_TYPE, body: `${body}\n` };
}

function send(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, { 'content-type': answer.type, 'content-length': Buffer.byteLength(answer.body) });
  response.end(answer.body);
}
