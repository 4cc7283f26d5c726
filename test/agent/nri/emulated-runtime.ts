import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { systemClock } from '../../../src/host/clock.js';
import { UnixListener } from '../../../src/host/unix-socket.js';
import type { Container } from '../../../src/rpc/gen/nri/pkg/api/v1alpha1/Container.js';
import type { ContainerAdjustment__Output } from '../../../src/rpc/gen/nri/pkg/api/v1alpha1/ContainerAdjustment.js';
import type { PodSandbox } from '../../../src/rpc/gen/nri/pkg/api/v1alpha1/PodSandbox.js';
import { nriProto } from '../../../src/rpc/proto.js';
import { Trunk } from '../../../src/rpc/ttrpc/trunk.js';
import { TtrpcClient } from '../../../src/rpc/ttrpc/ttrpc-client.js';
import { TtrpcServer } from '../../../src/rpc/ttrpc/ttrpc-server.js';
import { unary } from '../../../src/rpc/unary.js';
import { scratchDirectory } from '../../scratch.js';

const { Plugin, Runtime } = nriProto().nri.pkg.api.v1alpha1;
const PATIENCE_MS = 5_000;

export interface EmulatedContainers {
  readonly pods: readonly PodSandbox[];
  readonly containers: readonly Container[];
}

/** One plugin, as seen by a runtime. */
export class EmulatedPlugin {
  readonly registered: Promise<{ readonly plugin_name: string; readonly plugin_idx: string }>;
  readonly #client: TtrpcClient;
  readonly #trunk: Trunk;

  constructor(socket: Socket) {
    let hear: (request: { plugin_name: string; plugin_idx: string }) => void;
    this.registered = new Promise((resolve) => (hear = resolve));
    const server = new TtrpcServer({
      services: [
        {
          definition: Runtime.service,
          handlers: {
            RegisterPlugin: unary(async (request: { plugin_name: string; plugin_idx: string }) => {
              hear(request);
              return {};
            }),
          },
        },
      ],
      write: (message) => this.#trunk.send(2, message),
    });
    this.#client = new TtrpcClient((message) => this.#trunk.send(1, message), systemClock);
    this.#trunk = new Trunk(
      socket,
      new Map([
        [1, (bytes: Uint8Array) => this.#client.receive(bytes)],
        [2, (bytes: Uint8Array) => server.receive(bytes)],
      ]),
      () => this.#client.close(),
    );
  }

  /** Configures the plugin; returns the events that it subscribes to, as bits. */
  async configure(version = 'v2.9.9'): Promise<number> {
    const request = { runtime_name: 'emulated', runtime_version: version, NRI_version: 'v0.12.0' };
    return (await this.#client.call(Plugin.service.Configure, request, PATIENCE_MS)).events;
  }

  /** Lists pods and containers, in as many messages as there are parts. */
  async synchronize(...parts: readonly EmulatedContainers[]): Promise<void> {
    for (const [index, part] of parts.entries()) {
      const more = index < parts.length - 1;
      const answer = await this.#client.call(Plugin.service.Synchronize, { ...spread(part), more }, PATIENCE_MS);
      if (answer.more !== more) throw new Error(`part ${index} was answered with more=${answer.more}`);
    }
  }

  /** The adjustment that the plugin makes to a container before it is created. */
  async create(pod: PodSandbox, container: Container): Promise<ContainerAdjustment__Output | null> {
    return (await this.#client.call(Plugin.service.CreateContainer, { pod, container }, PATIENCE_MS)).adjust;
  }

  async tell(
    method: 'StartContainer' | 'StopContainer' | 'RemoveContainer' | 'RemovePodSandbox',
    subject: { readonly pod?: PodSandbox; readonly container?: Container },
  ): Promise<void> {
    await this.#client.call(Plugin.service[method], subject, PATIENCE_MS);
  }

  /** The message of runtimes before NRI 0.12. */
  async tellStateChange(
    event: 'START_CONTAINER' | 'REMOVE_CONTAINER' | 'REMOVE_POD_SANDBOX',
    subject: { readonly pod?: PodSandbox; readonly container?: Container },
  ): Promise<void> {
    await this.#client.call(Plugin.service.StateChange, { event, ...subject }, PATIENCE_MS);
  }

  /** Any bytes that another runtime might write. */
  write(connection: number, bytes: Buffer): void {
    this.#trunk.send(connection, bytes);
  }

  close(): void {
    this.#trunk.close();
  }
}

const spread = ({ pods, containers }: EmulatedContainers) => ({ pods: [...pods], containers: [...containers] });

/** The part of a container runtime that a plugin of the Node Resource Interface uses. */
export class EmulatedRuntime {
  readonly path: string;
  readonly #listener: UnixListener;
  readonly #plugins: EmulatedPlugin[] = [];
  #waiting: ((plugin: EmulatedPlugin) => void)[] = [];

  constructor(path: string) {
    this.path = path;
    this.#listener = new UnixListener(path, (socket) => {
      const plugin = new EmulatedPlugin(socket);
      const wanted = this.#waiting.shift();
      if (wanted === undefined) this.#plugins.push(plugin);
      else wanted(plugin);
    });
  }

  static async started(t: Test): Promise<EmulatedRuntime> {
    const runtime = new EmulatedRuntime(join(await scratchDirectory(t), 'nri.sock'));
    await runtime.#listener.start();
    t.teardown(() => runtime.#listener.stop());
    return runtime;
  }

  /** The next plugin that connects. */
  plugin(): Promise<EmulatedPlugin> {
    const plugin = this.#plugins.shift();
    return plugin === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(plugin);
  }

  /** The next plugin that connects, registered, configured and synchronized. */
  async readyPlugin(...parts: readonly EmulatedContainers[]): Promise<EmulatedPlugin> {
    const plugin = await this.plugin();
    await plugin.registered;
    await plugin.configure();
    await plugin.synchronize(...(parts.length === 0 ? [{ pods: [], containers: [] }] : parts));
    return plugin;
  }
}
