import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { Log } from '../../host/log.js';
import { socketIdentity } from '../../host/unix-socket.js';
import type { AllocateRequest__Output } from '../../rpc/gen/v1beta1/AllocateRequest.js';
import type { Empty__Output } from '../../rpc/gen/v1beta1/Empty.js';
import type { ListAndWatchResponse } from '../../rpc/gen/v1beta1/ListAndWatchResponse.js';
import type { RpcCall } from '../../rpc/grpc-call.js';
import type { PreferredAllocationRequest__Output } from '../../rpc/gen/v1beta1/PreferredAllocationRequest.js';
import type { PreStartContainerRequest__Output } from '../../rpc/gen/v1beta1/PreStartContainerRequest.js';
import { devicePluginProto } from '../../rpc/proto.js';
import { UnixRpcServer } from '../../rpc/rpc-server.js';
import { callUnary, unary } from '../../rpc/unary.js';
import type { PluginCalls } from './plugin-calls.js';

/** A resource with its plugin: the socket's file name below the device plugin directory, and what answers there. */
export interface PluginResource {
  readonly resource: string;
  readonly socket: string;
  readonly calls: PluginCalls;
}

/** Socket file names below the device plugin directory, those of tkestack gpu-manager. */
export const PLUGIN_SOCKET: Readonly<Record<ResourceKind, string>> = { core: 'vcore.sock', memory: 'vmemory.sock' };

/**
 * The options that the kubelet reads at registration and on request: PreStartContainer is required, preferred
 * allocation is available.
 */
export const PLUGIN_OPTIONS = { pre_start_required: true, get_preferred_allocation_available: true } as const;

/** The longest time that a kubelet waits for a plugin: its limit for PreStartContainer. */
export const CALL_PATIENCE_MS = 30_000;

type WatchStream = RpcCall<Empty__Output, ListAndWatchResponse>;

/** The device plugin of one resource, on its own socket. Each registration with a kubelet creates a new one. */
export class PluginServer {
  readonly #calls: PluginCalls;
  readonly #server: UnixRpcServer;
  readonly #watchers = new Set<WatchStream>();
  #unsubscribe: () => void = () => undefined;
  #identity: string | null = null;

  constructor({ resource, socket, calls }: PluginResource, directory: string, log: Log) {
    this.#calls = calls;
    const failed = (error: unknown): void => log.error({ err: error, resource }, 'a request of the kubelet failed');
    const { DevicePlugin } = devicePluginProto().v1beta1;
    this.#server = new UnixRpcServer(join(directory, socket), [
      {
        definition: DevicePlugin.service,
        handlers: {
          GetDevicePluginOptions: unary(async () => PLUGIN_OPTIONS, failed),
          ListAndWatch: (stream: WatchStream) => this.#watch(stream),
          GetPreferredAllocation: unary(
            (request: PreferredAllocationRequest__Output) => calls.preferredAllocation(request),
            failed,
          ),
          Allocate: unary((request: AllocateRequest__Output) => calls.allocate(request), failed),
          PreStartContainer: unary(
            (request: PreStartContainerRequest__Output) => calls.preStartContainer(request),
            failed,
          ),
        },
      },
    ]);
  }

  /** Starts the server, and verifies that it answers before the kubelet learns of it. */
  async start(): Promise<void> {
    await this.#server.start();
    this.#unsubscribe = this.#calls.onListChanged(() => {
      for (const stream of this.#watchers) this.#send(stream);
    });
    const { DevicePlugin } = devicePluginProto().v1beta1;
    const client = new DevicePlugin(`unix:${this.#server.path}`, credentials.createInsecure());
    try {
      await callUnary(client, 'GetDevicePluginOptions', {}, CALL_PATIENCE_MS);
    } finally {
      client.close();
    }
    this.#identity = await socketIdentity(this.#server.path);
  }

  /** False when the socket file was removed or replaced: the kubelet can no longer reach this server. */
  async isReachable(): Promise<boolean> {
    return this.#identity !== null && (await socketIdentity(this.#server.path)) === this.#identity;
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    for (const stream of this.#watchers) stream.end();
    this.#watchers.clear();
    await this.#server.stop();
  }

  #watch(stream: WatchStream): void {
    this.#watchers.add(stream);
    stream.onOver(() => this.#watchers.delete(stream));
    this.#send(stream);
  }

  #send(stream: WatchStream): void {
    stream.send(this.#calls.list());
  }
}
