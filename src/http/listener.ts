import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { systemClock } from '../host/clock.js';
import { LimitedLog, type LimitedLogTarget } from '../host/limited-log.js';
import { AddressRates, type Rate } from './address-rates.js';
import { plain, RefusedRequest, type Answer } from './answer.js';
import { writeBody } from './answer-writer.js';
import { BodyReader } from './body-reader.js';
import { boundedRequest } from './bounded-request.js';
import { answerDirectly } from './direct-probe.js';
import { HeldAnswers } from './held-answers.js';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.js';
import { listen } from './listen.js';
import { isLoopback, namesLoopback } from './loopback.js';
import { OpenConnections, type Exchange } from './open-connections.js';
import { probeAnswer, probeRoute, type Readiness } from './probe-routes.js';
import type { HttpRequest, Route } from './route.js';
import type { TlsMaterial, TlsSource } from './tls.js';
import { authorizationOf, type TokenAccess } from './token-access.js';

export type { HttpRequest, Route } from './route.js';

type Target = Pick<HttpRequest, 'path' | 'query'>;

export interface ListenerOptions extends Readiness {
  readonly address: string;
  /** 0: a free port. */
  readonly port: number;
  /** Null: plain HTTP. */
  readonly tls: TlsSource | null;
  /** The route of a path; null if there is none. The listener itself answers `/healthz` and `/readyz`. */
  readonly route: (path: string) => Route | null;
  /** Authorises callers of routes that are not open; null: every caller. */
  readonly access?: TokenAccess | null;
  readonly limits?: Partial<ListenerLimits>;
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly log: LimitedLogTarget;
}

/** Interval at which Node checks the time limits of connections. */
const LOOK_MS = 1_000;

const MIN_TLS = 'TLSv1.2';

/**
 * A connection that is closed because of too many unanswered requests counts as half of the burst of its address, and
 * as at least this many connections.
 */
const LEAST_PENALTY = 250;

/** Connections of an address beyond its rate that may still begin with a probe. */
const PROBE_RATE: Rate = { burst: 10, perSecond: 5 };

/**
 * The HTTP server of all programs: probes, limits of connections, requests, time and bytes, TLS 1.2 or later, tokens
 * where required. Requests without a route are answered here, and callers never see internal errors.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #limits: ListenerLimits;
  readonly #server: Server | HttpsServer;
  readonly #bodies: BodyReader;
  readonly #connections: OpenConnections;
  readonly #connectionRates: AddressRates;
  readonly #probeRates = new AddressRates(PROBE_RATE, systemClock);
  readonly #documentRates: AddressRates;
  readonly #unread: HeldAnswers;
  /** Connections beyond their address's rate. */
  readonly #probesOnly = new WeakSet<Socket>();
  /** Connections whose work was accepted, which do not count for the rate of their address. */
  readonly #working = new WeakSet<Socket>();
  readonly #log: LimitedLog;
  /** Answers in preparation, in total and by address. */
  #preparing = 0;
  readonly #preparingFor = new Map<string, number>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const limits = { ...LISTENER_LIMITS, ...options.limits };
    this.#limits = limits;
    this.#bodies = new BodyReader(limits);
    this.#connections = new OpenConnections(limits);
    this.#connectionRates = new AddressRates(limits.connectionRate, systemClock);
    this.#documentRates = new AddressRates(limits.documentRate, systemClock);
    this.#unread = new HeldAnswers(limits.unreadBytes);
    this.#log = new LimitedLog(options.log, systemClock);
    this.#server = this.#httpServer();
    this.#server.on('upgrade', ({ socket }) => {
      const penalty = Math.max(LEAST_PENALTY, limits.connectionRate.burst / 2);
      this.#connectionRates.fine(socket.remoteAddress ?? '', penalty);
      socket.destroy();
    });
    this.#readFirstBytes(options.tls === null ? 'connection' : 'secureConnection');
    this.#server.prependListener('connection', (socket: Socket) => this.#admit(socket));
  }

  #httpServer(): Server | HttpsServer {
    const { tls } = this.#options;
    const limits = this.#limits;
    const serverOptions: ServerOptions = {
      IncomingMessage: boundedRequest((socket) => this.#connections.isFull(socket)),
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headerMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.min(LOOK_MS, limits.headerMs),
    };
    const handle = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    if (tls === null) return createHttpServer(serverOptions, handle);
    const tlsOptions = {
      handshakeTimeout: limits.headerMs,
      minVersion: MIN_TLS,
      requestCert: tls.asksForCertificate,
      rejectUnauthorized: tls.asksForCertificate && tls.isCertificateOptional !== true,
    } as const;
    return createHttpsServer({ ...serverOptions, ...tlsOptions }, handle);
  }

  /** Puts the answer of probes before Node's parser, which is the server's listener of new connections. */
  #readFirstBytes(event: 'connection' | 'secureConnection'): void {
    const parsers = this.#server.listeners(event);
    this.#server.removeAllListeners(event);
    this.#server.on(event, (socket: Socket) => {
      if (socket.destroyed) return;
      answerDirectly(socket, {
        answerOf: (path) => probeAnswer(path, this.#options),
        firstBytesMs: this.#limits.headerMs,
        otherwise: () => {
          if (this.#probesOnly.has(socket)) socket.destroy();
          else for (const parse of parsers) parse.call(this.#server, socket);
        },
      });
    });
  }

  #admit(socket: Socket): void {
    if (!this.#connectionRates.take(socket.remoteAddress ?? '')) {
      const mayProbe = this.#options.tls === null && this.#probeRates.take(socket.remoteAddress ?? '');
      if (!mayProbe) return void socket.destroy();
      this.#probesOnly.add(socket);
    }
    this.#connections.admit(socket);
    return undefined;
  }

  /** The port in use, which matters if port 0 was requested; 0 before `start`. */
  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  /**
   * Rejects with a `StartupError` if it cannot listen on the address, and with another error if the certificate is
   * unusable.
   */
  async start(): Promise<void> {
    const { port, address, tls } = this.#options;
    if (tls !== null) {
      this.renew(await tls.read());
      tls.follow((material) => this.renew(material));
    }
    await listen(this.#server, port, address);
  }

  /** New connections use this certificate. */
  renew({ certificate, key, clientAuthority }: TlsMaterial): void {
    if (!('setSecureContext' in this.#server)) return;
    const ca = clientAuthority === null ? {} : { ca: clientAuthority };
    this.#server.setSecureContext({ cert: certificate, key, minVersion: MIN_TLS, ...ca });
  }

  /**
   * Accepts no further connections and lets running requests end; those that take longer than `graceMs` are aborted.
   */
  async stop(graceMs = 2_000): Promise<void> {
    this.#options.tls?.stop();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#connections.closeWaiting();
    const cancel = graceMs > 0 ? systemClock.after(graceMs, () => this.#server.closeAllConnections()) : () => undefined;
    if (graceMs === 0) this.#server.closeAllConnections();
    await closed;
    cancel();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A caller that disconnects is not an error of the server.
    response.on('error', () => undefined);
    const exchange = this.#connections.began(request.socket);
    response.once('close', () => exchange.end());
    let answer: Answer;
    try {
      answer = await this.#answer(request, exchange);
    } catch (error) {
      if (!(error instanceof RefusedRequest))
        this.#log.error({ err: error, method: request.method, path: pathOf(request.url) }, 'an HTTP request failed');
      answer = error instanceof RefusedRequest ? error.answer : plain(500, 'internal error');
    }
    if (request.method === 'POST' && answer.status === 200) this.#worked(request.socket);
    if (!response.destroyed && !response.headersSent) this.#send(request, response, exchange, answer);
  }

  #worked(socket: Socket): void {
    if (this.#working.has(socket)) return;
    this.#working.add(socket);
    this.#connectionRates.giveBack(socket.remoteAddress ?? '');
  }

  async #answer(request: IncomingMessage, exchange: Exchange): Promise<Answer> {
    const { address, access = null } = this.#options;
    const target = readTarget(request.url);
    if (target === null) return plain(400, 'the request target is not a path of this server');
    if (isLoopback(address) && !namesLoopback(request.headers.host))
      return plain(421, 'this server only answers requests to localhost');
    const { path } = target;
    const probe = probeRoute(path, this.#options);
    const found = probe ?? this.#options.route(path);
    const method = request.method ?? 'GET';
    const caller = request.socket.remoteAddress ?? '';
    if (probe === null && found?.method !== 'POST' && !this.#documentRates.take(caller)) return TOO_MANY_REQUESTS;
    if (found !== null && method !== found.method && !(found.method === 'GET' && method === 'HEAD'))
      return plain(405, `only ${found.method}`, { allow: found.method === 'GET' ? 'GET, HEAD' : found.method });
    if (access !== null && found?.isOpen !== true) {
      const refusal = await refusedToken(access, authorizationOf(request.headers), path);
      if (refusal !== null) return refusal;
    }
    if (found === null) return plain(404, 'not found');
    return this.#prepared(caller, () => this.#answerOf(found, target, request, exchange));
  }

  /** The answer that `prepare` returns; 503 if too many answers are in preparation. */
  async #prepared(caller: string, prepare: () => Promise<Answer>): Promise<Answer> {
    const { connections, connectionsPerAddress } = this.#limits;
    const forCaller = this.#preparingFor.get(caller) ?? 0;
    if (this.#preparing >= connections || forCaller >= connectionsPerAddress) return TOO_MANY_ANSWERS;
    this.#preparing += 1;
    this.#preparingFor.set(caller, forCaller + 1);
    try {
      return await prepare();
    } finally {
      this.#preparing -= 1;
      const left = (this.#preparingFor.get(caller) ?? 1) - 1;
      if (left === 0) this.#preparingFor.delete(caller);
      else this.#preparingFor.set(caller, left);
    }
  }

  async #answerOf(route: Route, target: Target, request: IncomingMessage, exchange: Exchange): Promise<Answer> {
    let release: () => void = () => undefined;
    const bytes = async (): Promise<Buffer> => {
      const body = await this.#bodies.read(request);
      release = body.release;
      return body.bytes;
    };
    try {
      return await route.answer({
        method: request.method ?? 'GET',
        ...target,
        headers: request.headers,
        clientName: clientNameOf(request.socket),
        bytes,
        body: async () => (await bytes()).toString('utf8'),
      });
    } finally {
      // The answer may consist of parts of the body.
      exchange.onEnd(release);
    }
  }

  #send(request: IncomingMessage, response: ServerResponse, exchange: Exchange, answer: Answer): void {
    const unread = answer.stream === undefined ? this.#unread.hold(answer.body) : () => undefined;
    if (unread !== null) exchange.onEnd(unread);
    const { status, type, body, headers, stream } = unread === null ? TOO_MANY_ANSWERS : answer;
    const length = status === 304 || stream !== undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    response.writeHead(status, {
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      ...this.#options.headers,
      'content-type': type,
      ...length,
      ...(hasUnreadBody(request) ? { connection: 'close' } : {}),
      ...headers,
    });
    if (request.method === 'HEAD') response.end();
    else if (stream === undefined) writeBody(response, body, this.#limits.readMs);
    else stream(response);
  }
}

const TOO_MANY_REQUESTS = plain(429, 'too many requests from this address; try again', {
  'retry-after': '1',
  connection: 'close',
});

const TOO_MANY_ANSWERS = plain(503, 'too many requests at once; try again', { 'retry-after': '1' });

/** Whether an unread body is still arriving, so that the connection cannot be reused. */
function hasUnreadBody({ headers, complete }: IncomingMessage): boolean {
  const isAnnounced = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return isAnnounced && !complete;
}

/** The path for the log: without the query, at most one line long. */
function pathOf(url = ''): string {
  return url.replace(/\?.*$/su, '').slice(0, 200);
}

function clientNameOf(socket: Socket): string | null {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  const { subject } = socket.getPeerCertificate();
  // A subject may have several common names.
  const names: string | string[] | undefined = (subject as { readonly CN?: string | string[] } | undefined)?.CN;
  return typeof names === 'string' ? names : (names?.[0] ?? '');
}

/** A path that is its own normal form, as nearly all are: parsing one takes a hundredth of a review. */
const NORMAL_PATH = /^(?:\/[\w-]+)+$/u;

function readTarget(text: string | undefined): Target | null {
  // Only paths: `http://other/` is a request to a proxy, and `//` begins a host name.
  if (text?.startsWith('/') !== true || text.startsWith('//')) return null;
  if (NORMAL_PATH.test(text)) return { path: text, query: new URLSearchParams() };
  if (!URL.canParse(text, 'http://localhost')) return null;
  const { pathname: path, searchParams: query } = new URL(text, 'http://localhost');
  return { path, query };
}

/** Why a caller may not read a path; null if it may. */
async function refusedToken(
  access: TokenAccess,
  authorization: string | undefined,
  path: string,
): Promise<Answer | null> {
  const decision = await access.check(authorization, path);
  switch (decision.kind) {
    case 'allowed':
      return null;
    case 'unknown':
      return plain(401, 'a bearer token of this cluster is required', { 'www-authenticate': 'Bearer' });
    case 'forbidden':
      return plain(403, `${decision.user} may not get the non-resource URL ${path}`);
    case 'unavailable':
      return plain(503, `the token cannot be reviewed now: ${decision.reason}`, { 'retry-after': '5' });
  }
}
