import type { Socket } from 'node:net';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { UnixListener } from '../host/unix-socket.js';
import { AuthorityStream } from './http2-authority-stream.js';
import type { RpcHandler } from './grpc-call.js';
import { GrpcConnection, type RpcMethod } from './grpc-connection.js';

export interface RpcService {
  /** Read when the first caller connects: a getter delays until then what its protocol declares. */
  readonly definition: ServiceDefinition;
  /** By the method's name. */
  readonly handlers: Readonly<Record<string, RpcHandler<never, unknown>>>;
}

/** Limits of one connection; a missing value means no limit, or the kubelet's. */
export interface RpcLimits {
  readonly messageLimitBytes?: number;
  /** Total bytes that a connection may send. */
  readonly bytesLimit?: number;
  readonly callsLimit?: number;
}

/** 16 MiB: a ListAndWatch answer for 16 GPUs of 192 GiB is about 1 MiB; requests are much smaller. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
/** A kubelet has one open stream per resource, and makes one call at a time. */
const CALLS_LIMIT = 100;

/** A gRPC server without its own listener: the owner of the connections passes them in. */
export class RpcServer {
  readonly #services: readonly RpcService[];
  #known: ReadonlyMap<string, RpcMethod> | null = null;
  readonly #limits: RpcLimits;
  readonly #onFailure: (error: unknown) => void;
  readonly #connections = new Set<GrpcConnection>();

  /** `onFailure` is called for an exception while a connection is served, which closes that connection. */
  constructor(
    services: readonly RpcService[],
    limits: RpcLimits = {},
    onFailure: (error: unknown) => void = () => undefined,
  ) {
    this.#services = services;
    this.#limits = limits;
    this.#onFailure = onFailure;
  }

  /** Serves one connection, which the server owns from now on; `onRefused` gets the reason if the server closes it. */
  accept(connection: Socket, onRefused: (error: Error) => void = () => undefined): void {
    const { messageLimitBytes = MESSAGE_LIMIT_BYTES, callsLimit = CALLS_LIMIT, bytesLimit } = this.#limits;
    const stream = new AuthorityStream(connection, bytesLimit);
    stream.on('error', onRefused);
    const served = new GrpcConnection(stream, {
      methods: this.#methods,
      messageLimitBytes,
      callsLimit,
      onFailure: this.#onFailure,
    });
    this.#connections.add(served);
    stream.once('close', () => this.#connections.delete(served));
  }

  /** Ends every call and connection at once. */
  stop(): void {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
  }

  /** The handler of a method. Fault injection replaces this function to intercept every handler of every server. */
  handlerOf(_method: MethodDefinition<unknown, unknown>, handler: RpcHandler<never, unknown>): RpcMethod['handler'] {
    return handler;
  }

  get #methods(): ReadonlyMap<string, RpcMethod> {
    return (this.#known ??= this.#methodsOf());
  }

  #methodsOf(): ReadonlyMap<string, RpcMethod> {
    const methods = new Map<string, RpcMethod>();
    for (const { definition, handlers } of this.#services) {
      for (const [name, method] of Object.entries(definition)) {
        const handler = handlers[name];
        if (handler !== undefined)
          methods.set(method.path, { definition: method, handler: this.handlerOf(method, handler) });
      }
    }
    return methods;
  }
}

/** gRPC services on a unix socket. */
export class UnixRpcServer {
  readonly path: string;
  readonly #rpc: RpcServer;
  readonly #listener: UnixListener;

  constructor(path: string, services: readonly RpcService[], options: { readonly mode?: number } = {}) {
    this.path = path;
    this.#rpc = new RpcServer(services);
    this.#listener = new UnixListener(path, (socket) => this.#rpc.accept(socket), options);
  }

  async start(): Promise<void> {
    await this.#listener.start();
  }

  async stop(): Promise<void> {
    this.#rpc.stop();
    await this.#listener.stop();
  }
}
