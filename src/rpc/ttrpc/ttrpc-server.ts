import { status, type MethodDefinition } from '@grpc/grpc-js';
import { Listeners } from '../../host/listeners.js';
import type { RpcCall, RpcHandler } from '../grpc-call.js';
import { ttrpcProto } from '../proto.js';
import type { RpcService } from '../rpc-server.js';
import { encodeMessage, MESSAGE_LIMIT_BYTES, MESSAGE_TYPE, MessageReader, type TtrpcMessage } from './message.js';

export interface TtrpcServerOptions {
  readonly services: readonly RpcService[];
  /** Sends one whole message; drops it if the connection is closed. */
  readonly write: (message: Buffer) => void;
  /** Called for an exception of a handler; its caller gets INTERNAL. */
  readonly onFailure?: (error: unknown) => void;
  /** Number of concurrent calls; further ones are refused. */
  readonly callsLimit?: number;
}

interface Method {
  readonly definition: MethodDefinition<unknown, unknown>;
  readonly handler: RpcHandler<never, unknown>;
}

const CALLS_LIMIT = 64;
/** Flag of a request whose stream continues. */
const REMOTE_OPEN = 0x02;

/**
 * Serves calls without streams on one ttrpc connection: the same services as gRPC. Pure apart from `write`. Calls run
 * concurrently and are answered in any order.
 */
export class TtrpcServer {
  readonly #options: TtrpcServerOptions;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #reader = new MessageReader();
  /** For each unanswered call, the functions to call when the connection closes. */
  readonly #open = new Map<number, Listeners>();
  #lastStream = 0;

  constructor(options: TtrpcServerOptions) {
    this.#options = options;
    this.#methods = new Map(
      options.services.flatMap(({ definition, handlers }) =>
        Object.entries(definition).flatMap(([name, method]) => {
          const handler = handlers[name];
          return handler === undefined ? [] : [[method.path, { definition: method, handler }] as const];
        }),
      ),
    );
  }

  /**
   * Accepts the next bytes of the connection. Throws if they are not requests: the connection cannot be used any more.
   */
  receive(bytes: Uint8Array): void {
    for (const message of this.#reader.feed(bytes)) this.#take(message);
  }

  /** The connection is closed: unanswered calls are notified. */
  close(): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const listeners of open) listeners.emit();
  }

  #take({ streamId, type, flags, payload }: TtrpcMessage): void {
    // Further data of a request that was refused because it was a stream.
    if (type === MESSAGE_TYPE.data) return;
    if (type !== MESSAGE_TYPE.request) throw new Error(`ttrpc: a message of type ${type} where a request belongs`);
    if (streamId % 2 === 0 || streamId <= this.#lastStream) {
      this.#refuse(streamId, status.INVALID_ARGUMENT, 'stream ids of a client are odd and rise');
      return;
    }
    this.#lastStream = streamId;
    if (payload === null) {
      this.#refuse(
        streamId,
        status.RESOURCE_EXHAUSTED,
        `the message exceeds the limit of ${MESSAGE_LIMIT_BYTES} bytes`,
      );
      return;
    }
    const request = this.#decode(() => ttrpcProto().ttrpc.Request.deserialize(payload));
    const method = request === null ? undefined : this.#methods.get(`/${request.service}/${request.method}`);
    if (request === null) this.#refuse(streamId, status.INVALID_ARGUMENT, 'the request cannot be read');
    // The method's name is not repeated, because a peer can put any text there.
    else if (method === undefined) this.#refuse(streamId, status.UNIMPLEMENTED, 'this connection has no such method');
    else if ((flags & REMOTE_OPEN) !== 0)
      this.#refuse(streamId, status.UNIMPLEMENTED, 'streams are not supported on this connection');
    else if (this.#open.size >= (this.#options.callsLimit ?? CALLS_LIMIT))
      this.#refuse(streamId, status.RESOURCE_EXHAUSTED, 'too many calls at once');
    else this.#call(streamId, method, request.payload);
  }

  #call(streamId: number, { definition, handler }: Method, payload: Buffer): void {
    const request = this.#decode(() => definition.requestDeserialize(payload));
    if (request === null) {
      this.#refuse(streamId, status.INVALID_ARGUMENT, 'the message is not of the type that the method takes');
      return;
    }
    const listeners = new Listeners();
    this.#open.set(streamId, listeners);
    let response: Buffer = Buffer.alloc(0);
    const call: RpcCall<unknown, unknown> = {
      request,
      send: (message) => {
        response = definition.responseSerialize(message);
      },
      end: (code = status.OK, details = '') => {
        if (!this.#open.delete(streamId)) return;
        if (code !== status.OK) this.#refuse(streamId, code, details);
        else if (response.length > MESSAGE_LIMIT_BYTES / 2)
          this.#refuse(streamId, status.RESOURCE_EXHAUSTED, `the answer of ${response.length} bytes is too long`);
        else this.#respond(streamId, { payload: response });
        listeners.emit();
      },
      onOver: (listener) => {
        if (this.#open.get(streamId) === listeners) listeners.add(listener);
        else listener();
      },
    };
    try {
      (handler as RpcHandler<unknown, unknown>)(call);
    } catch (error) {
      this.#options.onFailure?.(error);
      call.end(status.INTERNAL, 'the call failed');
    }
  }

  #decode<T>(decode: () => T): T | null {
    try {
      return decode();
    } catch {
      return null;
    }
  }

  #refuse(streamId: number, code: status, message: string): void {
    this.#respond(streamId, { status: { code, message } });
  }

  #respond(streamId: number, response: { payload?: Buffer; status?: { code: number; message: string } }): void {
    const payload = ttrpcProto().ttrpc.Response.serialize(response);
    this.#options.write(encodeMessage({ streamId, type: MESSAGE_TYPE.response, payload }));
  }
}
