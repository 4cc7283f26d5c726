import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { systemClock } from '../host/clock.js';
import { StartupError } from '../host/startup-error.js';
import { LimitedLog, type LimitedLogTarget } from '../host/limited-log.js';
import { plain, RefusedRequest, type Answer } from './answer.js';
import { BodyReader } from './body-reader.js';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.js';
import { isLoopback, namesLoopback } from './loopback.js';
import { OpenConnections } from './open-connections.js';
import type { TlsMaterial, TlsSource } from './tls.js';
import { authorizationOf, type TokenAccess } from './token-access.js';

/** A request with a known route and an authorised caller. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Common name of the caller's certificate if the listener requested and verified one. */
  readonly clientName: string | null;
  /** The whole body. Rejects with a RefusedRequest if it is too large. */
  body(): Promise<string>;
  /** The whole body as bytes, for bodies that are too large for a text; valid until the answer is sent. */
  bytes(): Promise<Buffer>;
}

/** The handler of one path. */
export interface Route {
  /** GET also serves HEAD. */
  readonly method: 'GET' | 'POST';
  /** Whether the route needs no token even if the listener requires one. */
  readonly isOpen?: boolean;
  readonly answer: (request: HttpRequest) => Answer | Promise<Answer>;
}

export interface ListenerOptions {
  readonly address: string;
  /** 0: a free port. */
  readonly port: number;
  /** Null: plain HTTP. */
  readonly tls: TlsSource | null;
  /** The route of a path; null if there is none. */
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
 * The HTTP server of all programs: limits of connections, time and bytes, TLS 1.2 or later, tokens where required.
 * Requests without a route are answered here, and callers never see internal errors.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server | HttpsServer;
  readonly #bodies: BodyReader;
  readonly #connections: OpenConnections;
  readonly #log: LimitedLog;

  constructor(options: ListenerOptions) {
    this.#options = options;
    const limits = { ...LISTENER_LIMITS, ...options.limits };
    this.#bodies = new BodyReader(limits);
    this.#log = new LimitedLog(options.log, systemClock);
    const serverOptions: ServerOptions = {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headerMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.min(LOOK_MS, limits.headerMs),
    };
    const handle = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    this.#server =
      options.tls === null
        ? createHttpServer(serverOptions, handle)
        : createHttpsServer(
            {
              ...serverOptions,
              handshakeTimeout: limits.headerMs,
              minVersion: MIN_TLS,
              requestCert: options.tls.asksForCertificate,
              rejectUnauthorized: options.tls.asksForCertificate && options.tls.isCertificateOptional !== true,
            },
            handle,
          );
    this.#connections = new OpenConnections(limits);
    this.#server.prependListener('connection', (socket: Socket) => this.#connections.admit(socket));
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
    await new Promise<void>((resolve, reject) => {
      const failed = (error: NodeJS.ErrnoException): void => reject(listenProblem(address, port, error));
      this.#server.once('error', failed);
      this.#server.listen(port, address, () => {
        this.#server.off('error', failed);
        resolve();
      });
    });
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
    this.#server.closeIdleConnections();
    const cancel = graceMs > 0 ? systemClock.after(graceMs, () => this.#server.closeAllConnections()) : () => undefined;
    if (graceMs === 0) this.#server.closeAllConnections();
    await closed;
    cancel();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A caller that disconnects is not an error of the server.
    response.on('error', () => undefined);
    response.once('close', this.#connections.began(request.socket));
    let answer: Answer;
    try {
      answer = await this.#answer(request, response);
    } catch (error) {
      if (!(error instanceof RefusedRequest))
        this.#log.error({ err: error, method: request.method, path: pathOf(request.url) }, 'an HTTP request failed');
      answer = error instanceof RefusedRequest ? error.answer : plain(500, 'internal error');
    }
    if (!response.destroyed && !response.headersSent) this.#send(request, response, answer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Answer> {
    const { address, access = null, route } = this.#options;
    const url = readUrl(request.url);
    if (url === null) return plain(400, 'the request target is not a path of this server');
    if (isLoopback(address) && !namesLoopback(request.headers.host))
      return plain(421, 'this server only answers requests to localhost');
    const { pathname: path, searchParams: query } = url;
    const found = route(path);
    const method = request.method ?? 'GET';
    if (found !== null && method !== found.method && !(found.method === 'GET' && method === 'HEAD'))
      return plain(405, `only ${found.method}`, { allow: found.method === 'GET' ? 'GET, HEAD' : found.method });
    if (access !== null && found?.isOpen !== true) {
      const refusal = await refusedToken(access, authorizationOf(request.headers), path);
      if (refusal !== null) return refusal;
    }
    if (found === null) return plain(404, 'not found');
    let release: () => void = () => undefined;
    const bytes = async (): Promise<Buffer> => {
      const body = await this.#bodies.read(request);
      release = body.release;
      return body.bytes;
    };
    try {
      return await found.answer({
        method,
        path,
        query,
        headers: request.headers,
        clientName: clientNameOf(request.socket),
        bytes,
        body: async () => (await bytes()).toString('utf8'),
      });
    } finally {
      // The answer may consist of parts of the body.
      if (response.closed) release();
      else response.once('close', release);
    }
  }

  #send(request: IncomingMessage, response: ServerResponse, { status, type, body, headers, stream }: Answer): void {
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
    if (stream !== undefined && request.method !== 'HEAD') stream(response);
    else response.end(request.method === 'HEAD' ? undefined : body);
  }
}

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

function readUrl(text: string | undefined): URL | null {
  // Only paths: `http://other/` is a request to a proxy, and `//` begins a host name.
  if (text?.startsWith('/') !== true || text.startsWith('//')) return null;
  return URL.canParse(text, 'http://localhost') ? new URL(text, 'http://localhost') : null;
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

/** Another program listens on the address. */
export class AddressInUse extends StartupError {}

function listenProblem(address: string, port: number, { code, message }: NodeJS.ErrnoException): StartupError {
  const place = `cannot listen on ${address.includes(':') ? `[${address}]` : address}:${port}`;
  if (code === 'EADDRINUSE')
    return new AddressInUse(`${place}: another program listens there; stop it or choose another port`);
  const why =
    code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND'
      ? 'this machine has no such address'
      : code === 'EACCES'
        ? 'ports below 1024 need root'
        : message;
  return new StartupError(`${place}: ${why}`);
}
