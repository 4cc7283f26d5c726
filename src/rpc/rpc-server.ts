import type { Socket } from 'node:net';
import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { UnixListener } from '../host/unix-socket.js';
import { AuthorityStream } from './http2-authority-stream.js';

export interface RpcService {
  readonly definition: ServiceDefinition;
  readonly handlers: UntypedServiceImplementation;
}

/** 16 MiB: a ListAndWatch answer for 16 GPUs of 192 GiB is about 1 MiB; a request never comes near. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;

/** A gRPC server without a listener of its own: whoever owns connections hands them in. */
export class RpcServer {
  readonly #server;
  readonly #injector;

  constructor(services: readonly RpcService[], options: { readonly messageLimitBytes?: number } = {}) {
    this.#server = new Server({ 'grpc.max_receive_message_length': options.messageLimitBytes ?? MESSAGE_LIMIT_BYTES });
    for (const service of services) this.#server.addService(service.definition, service.handlers);
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
  }

  /** Serves one connection. The stream belongs to the server from here on. */
  accept(connection: Socket): void {
    this.#injector.injectConnection(new AuthorityStream(connection));
  }

  /** Ends every call and connection at once; streams see CANCELLED. */
  stop(): void {
    this.#injector.destroy();
    this.#server.forceShutdown();
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
