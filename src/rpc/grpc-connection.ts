import {
  constants,
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import { status, type MethodDefinition } from '@grpc/grpc-js';
import type { RpcCall, RpcHandler } from './grpc-call.js';
import { HEADER_LIST_LIMIT_BYTES } from './http2-authority.js';

/** A method with its handler. */
export interface RpcMethod {
  readonly definition: MethodDefinition<unknown, unknown>;
  readonly handler: RpcHandler<never, unknown>;
}

export interface GrpcConnectionOptions {
  /** By path, `/package.Service/Method`. */
  readonly methods: ReadonlyMap<string, RpcMethod>;
  readonly messageLimitBytes: number;
  /** Number of concurrent calls. */
  readonly callsLimit: number;
  /** Called for an unexpected exception; the connection is closed then. */
  readonly onFailure: (error: unknown) => void;
}

/** Flag and length before each message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;
const SETTLED_HEADERS = { ':status': 200, 'content-type': 'application/grpc' } as const;
/** Node's memory limit per session in MiB; the smallest possible value is 1. */
const SESSION_MEMORY_MIB = 4;

/**
 * gRPC on one connection, served by Node's HTTP/2. The server of grpc-js is not used, because it answers some requests
 * without checking that their stream is still open: a peer that resets a stream in the same write ends the process.
 * Here each answer checks first. Supports unary and server-streaming methods without compression.
 */
export class GrpcConnection {
  readonly #options: GrpcConnectionOptions;
  readonly #session: ServerHttp2Session;

  /** Connection and session close together. */
  constructor(connection: Duplex, options: GrpcConnectionOptions) {
    this.#options = options;
    this.#session = performServerHandshake(connection, {
      maxSessionMemory: SESSION_MEMORY_MIB,
      settings: { maxConcurrentStreams: options.callsLimit, maxHeaderListSize: HEADER_LIST_LIMIT_BYTES },
    });
    // The calls on it learn of a broken connection.
    this.#session.on('error', () => undefined);
    this.#session.on('stream', (stream, headers) => this.#guarded(() => this.#serve(stream, headers)));
  }

  /** Ends every call and the connection at once. */
  close(): void {
    if (!this.#session.destroyed) this.#session.destroy(undefined, constants.NGHTTP2_CANCEL);
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => undefined);
    if (headers['content-type']?.startsWith('application/grpc') !== true) {
      if (isOpen(stream)) stream.respond({ ':status': 415 }, { endStream: true });
      return;
    }
    const method = this.#options.methods.get(headers[':path'] ?? '');
    if (method === undefined) {
      // The method's name is not repeated, because a peer can put any text there.
      refuse(stream, status.UNIMPLEMENTED, 'this socket has no such method');
      return;
    }
    this.#read(stream, (message) => this.#call(stream, method, message));
  }

  /** Reads the single message of a request. */
  #read(stream: ServerHttp2Stream, answer: (message: Buffer) => void): void {
    let parts: Buffer[] = [];
    let bytes = 0;
    let needed = PREFIX_BYTES;
    let prefixSeen = false;
    const fail = (code: status, details: string): void => {
      parts = [];
      needed = Infinity;
      refuse(stream, code, details);
    };
    stream.on('data', (chunk: Buffer) =>
      this.#guarded(() => {
        if (needed === Infinity) return;
        parts.push(chunk);
        bytes += chunk.length;
        if (!prefixSeen && bytes >= PREFIX_BYTES) {
          prefixSeen = true;
          const start = Buffer.concat(parts);
          parts = [start];
          const length = start.readUInt32BE(1);
          if (start[0] !== 0) return fail(status.UNIMPLEMENTED, 'compressed messages are not supported');
          if (length > this.#options.messageLimitBytes)
            return fail(
              status.RESOURCE_EXHAUSTED,
              `a message of ${length} bytes exceeds the limit of ${this.#options.messageLimitBytes}`,
            );
          needed = PREFIX_BYTES + length;
        }
        if (!prefixSeen || bytes < needed) return;
        if (bytes > needed) return fail(status.INTERNAL, 'more than one message in the request');
        const message = Buffer.concat(parts).subarray(PREFIX_BYTES);
        parts = [];
        needed = Infinity;
        answer(message);
      }),
    );
    stream.on('end', () =>
      this.#guarded(() => {
        if (needed !== Infinity) fail(status.INTERNAL, 'the request ended before its message');
      }),
    );
  }

  #call(stream: ServerHttp2Stream, { definition, handler }: RpcMethod, message: Buffer): void {
    let request: unknown;
    try {
      request = definition.requestDeserialize(message);
    } catch {
      refuse(stream, status.INVALID_ARGUMENT, 'the message is not of the type that the method takes');
      return;
    }
    let ended = false;
    const call: RpcCall<unknown, unknown> = {
      request,
      send: (response) =>
        this.#guarded(() => {
          if (ended || !isOpen(stream)) return;
          if (!stream.headersSent) stream.respond(SETTLED_HEADERS, { waitForTrailers: true });
          stream.write(framed(definition.responseSerialize(response)));
        }),
      end: (code = status.OK, details = '') =>
        this.#guarded(() => {
          if (ended) return;
          ended = true;
          finish(stream, code, details);
        }),
      onOver: (listener) => {
        if (stream.destroyed) listener();
        else stream.once('close', () => this.#guarded(listener));
      },
    };
    (handler as RpcHandler<unknown, unknown>)(call);
  }

  /** No exception while a peer's bytes are handled may end the process. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.onFailure(error);
      this.close();
    }
  }
}

const isOpen = (stream: ServerHttp2Stream): boolean =>
  !stream.destroyed && !stream.closed && stream.session?.destroyed === false && !stream.writableEnded;

/** Answers only with a status; the request may not have been read completely. */
function refuse(stream: ServerHttp2Stream, code: status, details: string): void {
  if (!isOpen(stream) || stream.headersSent) return;
  stream.respond({ ...SETTLED_HEADERS, ...trailersOf(code, details) }, { endStream: true });
}

function finish(stream: ServerHttp2Stream, code: status, details: string): void {
  if (!stream.headersSent) {
    refuse(stream, code, details);
    return;
  }
  if (!isOpen(stream)) return;
  stream.once('wantTrailers', () => {
    if (!stream.destroyed && !stream.closed) stream.sendTrailers(trailersOf(code, details));
  });
  stream.end();
}

/** Header fields may contain only printable ASCII; other characters are percent-encoded, as gRPC requires. */
function trailersOf(code: status, details: string): Record<string, string> {
  if (details === '') return { 'grpc-status': String(code) };
  const message = Buffer.from(details, 'utf8')
    .toString('latin1')
    .replace(/[^\x20-\x24\x26-\x7e]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  return { 'grpc-status': String(code), 'grpc-message': message };
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
