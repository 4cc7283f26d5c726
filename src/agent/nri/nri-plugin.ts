import { connect, type Socket } from 'node:net';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import { Pause } from '../../host/pause.js';
import { nriProto } from '../../rpc/proto.js';
import { Trunk } from '../../rpc/ttrpc/trunk.js';
import { TtrpcClient } from '../../rpc/ttrpc/ttrpc-client.js';
import { TtrpcServer } from '../../rpc/ttrpc/ttrpc-server.js';
import { pluginService, type PluginServiceOptions, type RuntimeFacts } from './plugin-service.js';

export interface NriPluginOptions extends PluginServiceOptions {
  /** `--nri-socket`. */
  readonly socketPath: string;
  /** Called when the runtime begins to ask this plugin, and when it stops, with the reason. */
  readonly onChange?: (connected: boolean, reason: string | null) => void;
  readonly clock: Clock;
}

const PLUGIN_NAME = 'gpu-manager';
/** Plugins are called in the order of their index: a late one sees the changes of the others. */
const PLUGIN_INDEX = '90';
/**
 * Logical connections on the socket: on the first the runtime calls the plugin, on the second the plugin calls the
 * runtime.
 */
const PLUGIN_CONNECTION = 1;
const RUNTIME_CONNECTION = 2;
/** A little less than the runtime's time limit. */
const REGISTRATION_MS = 4_500;
/** Time limit from the registration to the end of Synchronize. */
const SYNCHRONIZE_MS = 30_000;
/** Pause between two attempts: a restarted runtime is back, with pods to start, within a second or two. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** After a connection of this length the pauses start from the shortest again. */
const STABLE_MS = 30_000;

/**
 * The agent's plugin of the Node Resource Interface: connects to the runtime, serves it, and reconnects as long as the
 * agent runs. No other part waits for it: without a connection, containers start with the settings of the kubelet and
 * CDI.
 */
export class NriPlugin implements Part {
  readonly name = 'nri';
  readonly #options: NriPluginOptions;
  readonly #pause: Pause;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  #close: () => void = () => undefined;
  #runtime: RuntimeFacts | null = null;
  #losses = 0;

  constructor(options: NriPluginOptions) {
    this.#options = options;
    this.#pause = new Pause(options.clock);
  }

  /** The runtime, which calls this plugin for every new container; null without a connection. */
  get runtime(): RuntimeFacts | null {
    return this.#runtime;
  }

  /** How often a connection to a runtime was lost. */
  get losses(): number {
    return this.#losses;
  }

  async start(): Promise<void> {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    this.#close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log, socketPath } = this.#options;
    let pauseMs = FIRST_PAUSE_MS;
    let said = '';
    while (!this.#isStopped()) {
      const startedAt = clock.now();
      const reason = await this.#serveOnce();
      if (this.#isStopped()) return;
      if (this.#runtime !== null) {
        this.#losses += 1;
        this.#runtime = null;
        said = reason;
        log.warn(
          { socket: socketPath, reason },
          'the container runtime ended the NRI connection; containers start without NRI until it returns',
        );
        this.#options.onChange?.(false, reason);
      } else if (reason !== said) {
        said = reason;
        log.warn({ socket: socketPath, reason }, 'no NRI connection to the container runtime; retrying');
      }
      pauseMs = clock.now() - startedAt >= STABLE_MS ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, MAX_PAUSE_MS);
      await this.#pause.for(pauseMs);
    }
  }

  /** A method, because TypeScript assumes that a field does not change across an await. */
  #isStopped(): boolean {
    return this.#stopped;
  }

  /** Serves one connection until it ends; returns the reason, and never rejects. */
  async #serveOnce(): Promise<string> {
    const { clock, log, socketPath } = this.#options;
    const socket = connect(socketPath);
    const refused = await new Promise<Error | null>((resolve) => {
      this.#close = () => {
        socket.destroy();
        resolve(null);
      };
      socket.once('error', resolve);
      socket.once('connect', () => {
        socket.off('error', resolve);
        resolve(null);
      });
    });
    if (refused !== null) return refused.message;
    if (this.#isStopped()) return 'stopped';
    return this.#converse(socket, clock, log);
  }

  #converse(socket: Socket, clock: Clock, log: Log): Promise<string> {
    return new Promise<string>((resolve) => {
      let why: string | null = null;
      const client = new TtrpcClient((message) => trunk.send(RUNTIME_CONNECTION, message), clock);
      let facts: RuntimeFacts | null = null;
      const service = pluginService(this.#options, {
        configured: (runtime) => (facts = runtime),
        synchronized: () => {
          cancelPatience();
          if (this.#runtime !== null || facts === null) return;
          this.#runtime = facts;
          log.info({ runtime: facts }, 'the container runtime asks this agent about containers (NRI)');
          this.#options.onChange?.(true, null);
        },
      });
      const server = new TtrpcServer({
        services: [service],
        write: (message) => trunk.send(PLUGIN_CONNECTION, message),
        onFailure: (error) => log.error({ err: error }, 'a request of the container runtime (NRI) failed'),
      });
      const trunk = new Trunk(
        socket,
        new Map([
          [PLUGIN_CONNECTION, (bytes: Uint8Array) => server.receive(bytes)],
          [RUNTIME_CONNECTION, (bytes: Uint8Array) => client.receive(bytes)],
        ]),
        (failure) => {
          cancelPatience();
          server.close();
          client.close();
          resolve(why ?? failure?.message ?? 'closed by the runtime');
        },
      );
      const end = (reason: string): void => {
        why ??= reason;
        trunk.close();
      };
      this.#close = () => end('stopped');
      const cancelPatience = clock.after(SYNCHRONIZE_MS, () =>
        end(`the runtime did not synchronize within ${SYNCHRONIZE_MS / 1_000} s`),
      );
      // The runtime calls back before it answers the registration, so everything above must be served already.
      const { RegisterPlugin } = nriProto().nri.pkg.api.v1alpha1.Runtime.service;
      client
        .call(RegisterPlugin, { plugin_name: PLUGIN_NAME, plugin_idx: PLUGIN_INDEX }, REGISTRATION_MS)
        .catch((error: Error) => end(`the runtime does not register the plugin: ${error.message}`));
    });
  }
}
