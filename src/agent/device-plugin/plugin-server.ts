import { join } from 'node:path';
import { credentials, status } from '@grpc/grpc-js';
import type { ContainerEdits } from '../../gpu/container-edits.js';
import { markRefusal } from '../../gpu/refusal-mark.js';
import type { Refusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { Log } from '../../host/log.js';
import { socketIdentity } from '../../host/unix-socket.js';
import type { ContainerAllocateResponse } from '../../rpc/gen/v1beta1/ContainerAllocateResponse.js';
import type { Empty__Output } from '../../rpc/gen/v1beta1/Empty.js';
import type { ListAndWatchResponse } from '../../rpc/gen/v1beta1/ListAndWatchResponse.js';
import type { RpcCall } from '../../rpc/grpc-call.js';
import { devicePluginProto } from '../../rpc/proto.js';
import { UnixRpcServer } from '../../rpc/rpc-server.js';
import { callUnary, RpcRefusal, unary } from '../../rpc/unary.js';
import type { DeviceSource } from './devices.js';

/** Socket file names below the device plugin directory, those of tkestack gpu-manager. */
export const PLUGIN_SOCKET: Readonly<Record<ResourceKind, string>> = { core: 'vcore.sock', memory: 'vmemory.sock' };

/** What is told at registration and on request: every start goes through PreStartContainer, every choice through us. */
export const PLUGIN_OPTIONS = { pre_start_required: true, get_preferred_allocation_available: true } as const;

type WatchStream = RpcCall<Empty__Output, ListAndWatchResponse>;

/** The device plugin of one resource, on its own socket. A fresh one is made for each registration with a kubelet. */
export class PluginServer {
  readonly kind: ResourceKind;
  readonly #devices: DeviceSource;
  readonly #server: UnixRpcServer;
  readonly #watchers = new Set<WatchStream>();
  #unsubscribe: () => void = () => undefined;
  #identity: string | null = null;

  constructor(kind: ResourceKind, directory: string, devices: DeviceSource, log: Log) {
    this.kind = kind;
    this.#devices = devices;
    const failed = (error: unknown): void =>
      log.error({ err: error, resource: kind }, 'a request of the kubelet failed');
    const { DevicePlugin } = devicePluginProto().v1beta1;
    this.#server = new UnixRpcServer(join(directory, PLUGIN_SOCKET[kind]), [
      {
        definition: DevicePlugin.service,
        handlers: {
          GetDevicePluginOptions: unary(async () => PLUGIN_OPTIONS, failed),
          ListAndWatch: (stream: WatchStream) => this.#watch(stream),
          GetPreferredAllocation: unary(
            (request: Parameters<PluginServer['getPreferredAllocation']>[0]) => this.getPreferredAllocation(request),
            failed,
          ),
          Allocate: unary((request: Parameters<PluginServer['allocate']>[0]) => this.allocate(request), failed),
          PreStartContainer: unary(
            (request: Parameters<PluginServer['preStartContainer']>[0]) => this.preStartContainer(request),
            failed,
          ),
        },
      },
    ]);
  }

  /** Serves, and proves that it answers before anybody is told about it. */
  async start(): Promise<void> {
    await this.#server.start();
    this.#unsubscribe = this.#devices.onDevicesChanged(() => {
      for (const stream of this.#watchers) this.#send(stream);
    });
    const { DevicePlugin } = devicePluginProto().v1beta1;
    const client = new DevicePlugin(`unix:${this.#server.path}`, credentials.createInsecure());
    try {
      await callUnary(client, 'GetDevicePluginOptions', {}, 5_000);
    } finally {
      client.close();
    }
    this.#identity = await socketIdentity(this.#server.path);
  }

  /** False when somebody removed or replaced our socket file: the kubelet cannot reach us any more. */
  async isReachable(): Promise<boolean> {
    return this.#identity !== null && (await socketIdentity(this.#server.path)) === this.#identity;
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    for (const stream of this.#watchers) stream.end();
    this.#watchers.clear();
    await this.#server.stop();
  }

  async getPreferredAllocation(request: {
    readonly container_requests: readonly {
      readonly available_deviceIDs: readonly string[];
      readonly must_include_deviceIDs: readonly string[];
      readonly allocation_size: number;
    }[];
  }) {
    const responses = [];
    for (const container of request.container_requests) {
      const answer = await this.#devices.preferred(
        this.kind,
        container.available_deviceIDs,
        container.must_include_deviceIDs,
        container.allocation_size,
      );
      if (!answer.ok) throw refusalOf(answer);
      responses.push({ deviceIDs: [...answer.ids] });
    }
    return { container_responses: responses };
  }

  async allocate(request: { readonly container_requests: readonly { readonly devicesIDs: readonly string[] }[] }) {
    const responses = [];
    for (const container of request.container_requests) {
      const answer = await this.#devices.allocate(this.kind, container.devicesIDs);
      if (!answer.ok) throw refusalOf(answer);
      responses.push(allocateResponse(answer.edits));
    }
    return { container_responses: responses };
  }

  async preStartContainer(request: { readonly devicesIDs: readonly string[] }) {
    const answer = await this.#devices.preStart(this.kind, request.devicesIDs);
    if (!answer.ok) throw refusalOf(answer);
    return {};
  }

  #watch(stream: WatchStream): void {
    this.#watchers.add(stream);
    stream.onOver(() => this.#watchers.delete(stream));
    this.#send(stream);
  }

  #send(stream: WatchStream): void {
    const devices = this.#devices.devices(this.kind).map((device) => ({
      ID: device.id,
      health: device.healthy ? 'Healthy' : 'Unhealthy',
      topology: device.numaNode === null ? null : { nodes: [{ ID: device.numaNode }] },
    }));
    stream.send({ devices });
  }
}

const STATUS: Readonly<Partial<Record<Refusal['code'], status>>> = {
  'bad-core-count': status.INVALID_ARGUMENT,
  'core-missing': status.INVALID_ARGUMENT,
  'memory-missing': status.INVALID_ARGUMENT,
  'memory-too-large': status.INVALID_ARGUMENT,
  'nothing-fits': status.RESOURCE_EXHAUSTED,
  'unknown-ids': status.NOT_FOUND,
  'unknown-container': status.NOT_FOUND,
};

function refusalOf(refusal: Refusal): RpcRefusal {
  return new RpcRefusal(STATUS[refusal.code] ?? status.FAILED_PRECONDITION, markRefusal(refusal.reason));
}

function allocateResponse(edits: ContainerEdits): ContainerAllocateResponse {
  return {
    envs: edits.environment,
    mounts: edits.mounts.map((mount) => ({
      container_path: mount.containerPath,
      host_path: mount.hostPath,
      read_only: !mount.writable,
    })),
    devices: edits.deviceNodes.map((node) => ({
      container_path: node.containerPath,
      host_path: node.hostPath,
      permissions: 'rwm',
    })),
    annotations: edits.annotations,
    cdi_devices: edits.cdiDevices.map((name) => ({ name })),
  };
}
