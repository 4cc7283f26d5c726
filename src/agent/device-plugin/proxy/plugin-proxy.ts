import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { RESOURCE_NAME, type ResourceKind } from '../../../gpu/resources.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import type { RegisterRequest__Output } from '../../../rpc/gen/v1beta1/RegisterRequest.js';
import { devicePluginProto } from '../../../rpc/proto.js';
import { UnixRpcServer } from '../../../rpc/rpc-server.js';
import { RpcRefusal, unary } from '../../../rpc/unary.js';
import { DevicePlugin, KUBELET_SOCKET } from '../plugin.js';
import { ForwardedCalls } from './forwarded-calls.js';

const KINDS: readonly ResourceKind[] = ['core', 'memory'];

export interface PluginProxyOptions {
  /** Directory of the kubelet's socket and of the plugin sockets, usually /var/lib/kubelet/device-plugins. */
  readonly kubeletDirectory: string;
  /** Directory in which agents register. It contains a socket like the kubelet's, and the agents' sockets. */
  readonly agentDirectory: string;
  readonly agentTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A proxy between kubelet and agent, so that the kubelet's connection survives restarts of the agent. The proxy acts as
 * a kubelet to the agent and as an agent to the kubelet. While a plugin is away, the kubelet fails the pods that it
 * admits; since 1.26, it also drops a new registration when the previous connection ends later. Only a permanent
 * connection protects pods from both.
 */
export class PluginProxy {
  readonly #options: PluginProxyOptions;
  readonly #calls: Readonly<Record<ResourceKind, ForwardedCalls>>;
  readonly #registration: UnixRpcServer;
  readonly #plugin: DevicePlugin;
  #serving: Promise<void> | null = null;

  constructor(options: PluginProxyOptions) {
    const { kubeletDirectory, agentDirectory, agentTimeoutMs, clock, log } = options;
    this.#options = options;
    const forwarded = (kind: ResourceKind): ForwardedCalls =>
      new ForwardedCalls({
        agentTimeoutMs,
        clock,
        onAgent: (state) => this.#note(kind, state),
      });
    this.#calls = { core: forwarded('core'), memory: forwarded('memory') };
    const { Registration } = devicePluginProto().v1beta1;
    this.#registration = new UnixRpcServer(join(agentDirectory, KUBELET_SOCKET), [
      {
        definition: Registration.service,
        handlers: { Register: unary((request: RegisterRequest__Output) => this.#register(request)) },
      },
    ]);
    this.#plugin = new DevicePlugin({ directory: kubeletDirectory, calls: this.#calls, clock, log });
  }

  /**
   * Waits for an agent in the background. The proxy registers with the kubelet once both resources have been listed.
   */
  async start(): Promise<void> {
    await this.#registration.start();
  }

  async stop(): Promise<void> {
    await this.#serving?.catch(() => undefined);
    if (this.#serving !== null) await this.#plugin.stop();
    await this.#registration.stop();
    for (const kind of KINDS) this.#calls[kind].close();
  }

  async #register({ version, resource_name, endpoint }: RegisterRequest__Output): Promise<object> {
    const kind = KINDS.find((each) => RESOURCE_NAME[each] === resource_name);
    if (kind === undefined)
      throw new RpcRefusal(
        status.INVALID_ARGUMENT,
        `expected ${KINDS.map((each) => RESOURCE_NAME[each]).join(' or ')}, found ${resource_name}`,
      );
    if (version !== 'v1beta1')
      throw new RpcRefusal(
        status.INVALID_ARGUMENT,
        `expected version v1beta1 of the device plugin API, found ${version}`,
      );
    this.#calls[kind].connect(join(this.#options.agentDirectory, endpoint));
    return {};
  }

  #note(kind: ResourceKind, state: 'connected' | 'gone' | 'missing'): void {
    const { log } = this.#options;
    const resource = RESOURCE_NAME[kind];
    if (state === 'connected') {
      log.info({ resource }, 'the agent is connected');
      if (KINDS.every((each) => this.#calls[each].known)) this.#serve();
    } else if (state === 'gone')
      log.warn({ resource }, 'the agent disconnected; calls of the kubelet wait for the next agent');
    else log.error({ resource }, 'no agent reconnected in time; the devices are unhealthy until one does');
  }

  /** Serves the kubelet once the first lists have arrived. */
  #serve(): void {
    this.#serving ??= this.#plugin.start().catch((error: unknown) => {
      this.#serving = null;
      this.#options.log.error({ err: error }, 'the device plugin directory of the kubelet cannot be used');
    });
  }
}
