import { request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../host/clock.js';
import { KEEP_ALIVE_MS, type Access, type Credentials } from './credentials.js';
import { failure, failureOf, type KubeFailure } from './failure.js';
import { ServerTime } from './server-time.js';

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the server's base URL, encoded; see api-path.ts. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Default `application/json`; another one for patches. */
  readonly contentType?: string;
  /** Default `application/json`. */
  readonly accept?: string;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time limit for the whole answer, if it differs from the client's. */
  readonly timeoutMs?: number;
  /** Asked when the connection is there: false sends nothing. A connection can take as long as the whole time limit. */
  readonly mayStillSend?: () => boolean;
  /** A larger answer is refused, if this differs from the client's. */
  readonly largestBytes?: number;
}

export type KubeAnswer = { readonly ok: true; readonly body: unknown } | KubeFailure;

/** A client of an API server. Never rejects. */
export interface KubeApi {
  request(request: KubeRequest): Promise<KubeAnswer>;
}

export const MERGE_PATCH = 'application/merge-patch+json';
/** Merges lists of built-in kinds by their keys, such as conditions by type. */
export const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';

/** Accept header for requests and watches that need only metadata. */
export const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

/** Accept header for lists that need only metadata. */
export const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/** Node reads up to two megabytes of events from a socket at once; after this time others have a turn. */
const TURN_MS = 10;

/** A Status has some hundred bytes; a server behind the proxy sends what it likes. */
const LARGEST_REFUSAL_BYTES = 1 << 20;

export interface KubeClientOptions {
  readonly credentials: Credentials;
  readonly clock: Clock;
  /** Shown in the server's audit log. */
  readonly userAgent: string;
  /** Time limit for a whole answer, and for the first byte of a watch. */
  readonly timeoutMs?: number;
  /** Larger answers and watch events are refused. */
  readonly largestBytes?: number;
}

/** Receives the events of an open watch. */
export interface WatchHandlers {
  opened(): void;
  event(event: unknown): void;
}

export interface OpenWatch {
  /** How it ended: `ok` if the server closed it regularly. */
  readonly ended: Promise<{ readonly ok: true } | KubeFailure>;
  close(): void;
}

/**
 * The only HTTP client of the API server. Every request has a time limit, and every failure is a value. It retries only
 * requests that are safe to repeat at once: a request on a kept connection that turned out to be dead, and one with
 * expired credentials.
 */
export class KubeClient implements KubeApi {
  readonly #options: KubeClientOptions;
  readonly #timeoutMs: number;
  readonly #largestBytes: number;
  readonly #open = new Set<ClientRequest>();
  /** The API server's time according to its answers. */
  readonly serverTime = new ServerTime();
  #closed = false;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? 15_000;
    this.#largestBytes = options.largestBytes ?? 64 * 1024 * 1024;
  }

  /** Never rejects. */
  async request(request: KubeRequest): Promise<KubeAnswer> {
    const first = await this.#once(request);
    if (first.ok) return first;
    const again = first.code === 'unauthorized' || (first.stale === true && request.method !== 'POST');
    if (first.code === 'unauthorized') this.#options.credentials.distrust();
    return again ? this.#once(request) : first;
  }

  /** The same API server, asked with a bearer token alone instead of this client's credentials. */
  withToken(token: string): KubeApi {
    const { credentials } = this.#options;
    const access = async (): Promise<Access> => {
      const { plainAgent } = await credentials.access();
      if (plainAgent === undefined) throw new Error('no connection without a client certificate through a proxy');
      return { agent: plainAgent, plainAgent, headers: { authorization: `Bearer ${token}` } };
    };
    const none = (): void => undefined;
    return new KubeClient({
      ...this.#options,
      credentials: { server: credentials.server, access, distrust: none, close: none },
    });
  }

  /** Opens a watch; `idleMs` ends a connection without data, which TCP alone detects after minutes. */
  watch(
    request: Pick<KubeRequest, 'path' | 'accept'> & {
      readonly query: Readonly<Record<string, string>>;
      readonly idleMs: number;
    },
    handlers: WatchHandlers,
  ): OpenWatch {
    let outgoing: ClientRequest | null = null;
    let closed = false;
    const ended = this.#send({ ...request, method: 'GET' }).then(async (sent): Promise<{ ok: true } | KubeFailure> => {
      if (!sent.ok) return sent;
      outgoing = sent.outgoing;
      if (closed) outgoing.destroy();
      const started = await this.#response(sent.outgoing, this.#timeoutMs);
      if (!started.ok) return started;
      if (started.response.statusCode !== 200) return this.#refusal(started.response);
      handlers.opened();
      return this.#lines(started.response, request.idleMs, handlers);
    });
    return {
      ended: ended.then((end) => {
        if (!end.ok && end.code === 'unauthorized') this.#options.credentials.distrust();
        return end;
      }),
      close: () => {
        closed = true;
        outgoing?.destroy();
      },
    };
  }

  /** Aborts all running requests; later requests fail at once. */
  close(): void {
    this.#closed = true;
    for (const outgoing of this.#open) outgoing.destroy();
    this.#options.credentials.close();
  }

  async #once(request: KubeRequest): Promise<KubeAnswer & { readonly stale?: boolean }> {
    const sentAt = this.serverTime.mark();
    const sent = await this.#send(request);
    if (!sent.ok) return sent;
    const timeoutMs = request.timeoutMs ?? this.#timeoutMs;
    const cancel = this.#options.clock.after(timeoutMs, () => sent.outgoing.destroy(new LateError(timeoutMs)));
    try {
      const started = await this.#response(sent.outgoing, null);
      if (!started.ok) return { ...started, stale: sent.outgoing.reusedSocket && started.code === 'unreachable' };
      const { response } = started;
      this.serverTime.learn(response.headers.date, sentAt);
      if (response.statusCode === undefined || response.statusCode < 200 || response.statusCode > 299)
        return await this.#refusal(response);
      const text = await this.#text(response, request.largestBytes);
      return text.ok ? parse(text.text) : text;
    } finally {
      cancel();
    }
  }

  async #send(request: KubeRequest): Promise<{ readonly ok: true; readonly outgoing: ClientRequest } | KubeFailure> {
    const { credentials, userAgent } = this.#options;
    let access;
    try {
      access = await credentials.access();
    } catch (error) {
      return failure('unauthorized', `the credentials cannot be read: ${(error as Error).message}`);
    }
    if (this.#closed) return failure('unreachable', 'closed');
    const { server } = credentials;
    const query = request.query === undefined ? '' : `?${new URLSearchParams(request.query).toString()}`;
    // As bytes: a text would be joined with the headers and encoded once more.
    const body = request.body === undefined ? null : Buffer.from(JSON.stringify(request.body));
    const options: RequestOptions = {
      method: request.method,
      protocol: server.protocol,
      hostname: server.hostname.replace(/^\[|\]$/g, ''),
      port: server.port,
      path: `${server.pathname.replace(/\/$/, '')}${request.path}${query}`,
      agent: access.agent,
      headers: {
        accept: request.accept ?? 'application/json',
        'user-agent': userAgent,
        ...request.headers,
        ...access.headers,
        ...(body === null
          ? {}
          : { 'content-type': request.contentType ?? 'application/json', 'content-length': body.length }),
      },
    };
    const outgoing = server.protocol === 'http:' ? httpRequest(options) : httpsRequest(options);
    this.#open.add(outgoing);
    outgoing.on('close', () => this.#open.delete(outgoing));
    // The code that waits for the answer gets the error as well; without this listener it would end the process.
    outgoing.on('error', () => undefined);
    // A kept connection has it already: each call is several system calls.
    outgoing.on('socket', (socket) => {
      if (!outgoing.reusedSocket) socket.setKeepAlive(true, KEEP_ALIVE_MS);
    });
    const { mayStillSend } = request;
    if (mayStillSend === undefined) outgoing.end(body ?? undefined);
    else
      whenConnected(outgoing, () => {
        if (mayStillSend()) outgoing.end(body ?? undefined);
        else outgoing.destroy(new Error('not sent: it would come too late'));
      });
    return { ok: true, outgoing };
  }

  #response(
    outgoing: ClientRequest,
    timeoutMs: number | null,
  ): Promise<{ readonly ok: true; readonly response: IncomingMessage } | KubeFailure> {
    const cancel =
      timeoutMs === null
        ? () => undefined
        : this.#options.clock.after(timeoutMs, () => outgoing.destroy(new LateError(timeoutMs)));
    return new Promise((resolve) => {
      outgoing.once('response', (response) => {
        cancel();
        resolve({ ok: true, response });
      });
      outgoing.once('error', (error) => {
        cancel();
        resolve(brokenBy(error));
      });
      outgoing.once('close', () => resolve(failure('unreachable', 'closed')));
    });
  }

  async #refusal(response: IncomingMessage): Promise<KubeFailure> {
    const text = await this.#text(response, LARGEST_REFUSAL_BYTES);
    const parsed = text.ok ? parse(text.text) : text;
    const body = parsed.ok ? parsed.body : text.ok ? plainStatus(text.text) : null;
    return failureOf(response.statusCode ?? 0, body, response.headers['retry-after']);
  }

  /** By listeners: an iterator of the response takes several times as long for a short answer. */
  #text(
    response: IncomingMessage,
    largestBytes = this.#largestBytes,
  ): Promise<{ readonly ok: true; readonly text: string } | KubeFailure> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    return new Promise((resolve) => {
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= largestBytes) return void chunks.push(chunk);
        resolve(failure('malformed', `an answer of more than ${largestBytes} bytes`));
        response.destroy();
      });
      response.once('end', () => resolve({ ok: true, text: joined(chunks) }));
      response.once('error', (error) => resolve(brokenBy(error)));
      response.once('close', () => resolve(failure('unreachable', 'closed')));
    });
  }

  async #lines(
    response: IncomingMessage,
    idleMs: number,
    handlers: WatchHandlers,
  ): Promise<{ ok: true } | KubeFailure> {
    const { clock } = this.#options;
    const late = (): void => void response.destroy(new LateError(idleMs));
    let cancel = clock.after(idleMs, late);
    let rest = '';
    let turnMs = 0;
    response.setEncoding('utf8');
    try {
      for await (const chunk of response as AsyncIterable<string>) {
        cancel();
        cancel = clock.after(idleMs, late);
        rest += chunk;
        for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
          const startedMs = performance.now();
          const event = parse(rest.slice(0, end));
          rest = rest.slice(end + 1);
          if (!event.ok) return event;
          handlers.event(event.body);
          turnMs += performance.now() - startedMs;
          if (turnMs < TURN_MS) continue;
          await nextTurn();
          turnMs = 0;
        }
        if (rest.length > this.#largestBytes)
          return failure('malformed', `an event of more than ${this.#largestBytes} bytes`);
      }
      return { ok: true };
    } catch (error) {
      return brokenBy(error as Error);
    } finally {
      cancel();
      response.destroy();
    }
  }
}

function whenConnected(outgoing: ClientRequest, action: () => void): void {
  outgoing.once('socket', (socket) => {
    if (outgoing.reusedSocket) action();
    else socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', action);
  });
}

function joined(chunks: readonly Buffer[]): string {
  return (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString('utf8');
}

class LateError extends Error {
  constructor(afterMs: number) {
    super(`nothing came for ${afterMs} ms`);
  }
}

function brokenBy(error: Error): KubeFailure {
  return failure(error instanceof LateError ? 'timeout' : 'unreachable', error.message);
}

/** The answer of a server behind a proxy, which is a text: its first line is the message. Null for markup. */
function plainStatus(text: string): { readonly message: string } | null {
  const message = text.trim().split('\n')[0]?.slice(0, 300) ?? '';
  return message === '' || message.startsWith('<') ? null : { message };
}

function parse(text: string): { readonly ok: true; readonly body: unknown } | KubeFailure {
  try {
    return { ok: true, body: JSON.parse(text) };
  } catch {
    return failure('malformed', `not JSON: ${text.slice(0, 80)}`);
  }
}
