import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ApiError } from '../api.js';
import type { QuotaLog } from '../log.js';
import { readReview, reviewAnswer, type Review, type AdmissionResponse } from './review.js';

export interface Certificate {
  /** PEM. */
  readonly key: string;
  readonly certificate: string;
}

export interface WebhookServerOptions {
  readonly address: string;
  readonly port: number;
  readonly certificate: Certificate;
  /** By path: `/workloads`. */
  readonly reviews: Readonly<Record<string, (review: Review) => Promise<AdmissionResponse>>>;
  /** Why nothing can be decided yet; null once it can. */
  readonly notReady: () => string | null;
  /** Text of GET /metrics. */
  readonly metrics: () => Promise<string>;
  /** Told of each decision: path, response, seconds. */
  readonly decided: (path: string, response: AdmissionResponse, seconds: number) => void;
  readonly log: QuotaLog;
}

/** An object has 1.5 MiB at most, and a review has two of them. */
const MAX_BODY_BYTES = 8 << 20;

/** Serves validating webhooks over HTTPS, with probes and metrics. */
export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #server: Server;

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    const { key, certificate } = options.certificate;
    this.#server = createServer(
      { key, cert: certificate, minVersion: 'TLSv1.2' },
      (request, response) => void this.#handle(request, response),
    );
  }

  /** The port in use: of interest where 0 was asked for. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Rejects when the address can not be listened on. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  /** Connections made from now on see this certificate. */
  renew({ key, certificate }: Certificate): void {
    this.#server.setSecureContext({ key, cert: certificate });
  }

  /** Lets decisions under way be told; those that take too long are cut. */
  async stop(graceMs = 2000): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await closed;
    clearTimeout(cut);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    try {
      const { pathname } = new URL(request.url ?? '/', 'https://localhost');
      const review = this.#options.reviews[pathname];
      if (review !== undefined) await this.#review(pathname, review, request, response);
      else await this.#read(pathname, response);
    } catch (error) {
      this.#options.log.error({ err: error, url: request.url }, 'a request failed');
      if (response.headersSent) response.destroy();
      else answer(response, 500, 'internal error');
    }
  }

  async #review(
    path: string,
    decide: (review: Review) => Promise<AdmissionResponse>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (request.method !== 'POST') return answer(response, 405, 'only POST');
    const started = performance.now();
    const body = await bodyOf(request);
    if (body === null) return answer(response, 413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
    const notReady = this.#options.notReady();
    if (notReady !== null) return answer(response, 503, notReady);
    const read = readReview(body);
    if (!read.ok) return answer(response, 400, read.reason);
    const decision = await this.#decided(decide, read.review);
    this.#options.decided(path, decision, (performance.now() - started) / 1000);
    answer(response, 200, JSON.stringify(reviewAnswer(read.review.uid, decision)), 'application/json');
  }

  /** What can not be decided because the API server failed is refused for now: nothing is let through unseen. */
  async #decided(decide: (review: Review) => Promise<AdmissionResponse>, review: Review): Promise<AdmissionResponse> {
    try {
      return await decide(review);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#options.log.warn(
        { err: error, resource: review.resource, name: review.name },
        'a review could not be decided',
      );
      return {
        allowed: false,
        code: 503,
        reason: 'ServiceUnavailable',
        message: `the quota could not be looked up, try again: ${error.message}`,
      };
    }
  }

  async #read(path: string, response: ServerResponse): Promise<void> {
    if (path === '/healthz') return answer(response, 200, 'ok');
    if (path === '/metrics') return answer(response, 200, await this.#options.metrics());
    if (path !== '/readyz') return answer(response, 404, 'not found');
    const reason = this.#options.notReady();
    answer(response, reason === null ? 200 : 503, reason ?? 'ok');
  }
}

function answer(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
