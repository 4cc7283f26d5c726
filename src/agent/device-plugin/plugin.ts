import { join } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';
import { RESOURCE_NAME, type ResourceKind } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import { socketIdentity } from '../../host/unix-socket.js';
import type { PluginCalls } from './plugin-calls.js';
import { PLUGIN_SOCKET, PluginServer, type PluginResource } from './plugin-server.js';
import { register } from './registration.js';

export const KUBELET_SOCKET = 'kubelet.sock';

const KINDS: readonly ResourceKind[] = ['core', 'memory'];
/**
 * File events can be missed, for example when the directory is created again, so the directory is also checked in this
 * interval.
 */
const CHECK_PERIOD_MS = 5_000;
/**
 * Delay before the first retry of a registration; it doubles up to the longest. The socket of a starting kubelet exists
 * a moment before the kubelet answers there, and pods that it admits before the registration are refused.
 */
const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

export interface DevicePluginOptions {
  /** Directory of kubelet.sock and of the plugin sockets, usually /var/lib/kubelet/device-plugins. */
  readonly directory: string;
  readonly calls: Readonly<Record<ResourceKind, PluginCalls>>;
  /** Resources besides cores and memory; those of a later call may be others. */
  readonly others?: () => readonly PluginResource[];
  readonly clock: Clock;
  readonly log: Log;
  /** Called when registration with the kubelet succeeds or is lost. */
  readonly onRegistered?: (registered: boolean) => void;
}

/**
 * Both device plugins and their registration. A starting kubelet removes every socket in the directory and forgets all
 * plugins. A restart of the kubelet, a failed registration and a lost socket are handled in the same way: serve again
 * and register again.
 */
export class DevicePlugin implements Part {
  readonly name = 'device-plugin';
  readonly #options: DevicePluginOptions;
  readonly #kubeletSocket: string;
  #servers: PluginServer[] = [];
  #resources: readonly PluginResource[] = [];
  #watcher: FSWatcher | null = null;
  #stopChecking: () => void = () => undefined;
  #registeredWith: string | null = null;
  /** Failures since the last success. */
  #failures = 0;
  #checking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: DevicePluginOptions) {
    this.#options = options;
    this.#kubeletSocket = join(options.directory, KUBELET_SOCKET);
  }

  get registered(): boolean {
    return this.#registeredWith !== null;
  }

  /**
   * Serves and registers. If the kubelet is not running yet, waits for it in the background; an unusable directory
   * rejects.
   */
  async start(): Promise<void> {
    await this.#serve();
    this.#watcher = watch(this.#options.directory, { depth: 0, ignoreInitial: true });
    this.#watcher.on('all', () => void this.check());
    this.#watcher.on('error', (error) =>
      this.#options.log.warn({ err: error }, 'watching the device plugin directory failed'),
    );
    this.#stopChecking = this.#options.clock.every(CHECK_PERIOD_MS, () => void this.check());
    await this.check();
  }

  /** Compares the existing sockets with those at registration, and registers again if they differ. */
  check(): Promise<void> {
    this.#checking = this.#checking
      .then(async () => {
        await this.#checkOnce();
        this.#failures = 0;
      })
      .catch((error: unknown) => {
        const retryMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures);
        this.#failures += 1;
        this.#options.log.warn(
          { reason: (error as Error).message, retryMs },
          'registration with the kubelet failed; retrying',
        );
        this.#options.clock.after(retryMs, () => void this.check());
      });
    return this.#checking;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopChecking();
    await this.#watcher?.close();
    await this.#checking;
    await Promise.all(this.#servers.map((server) => server.stop()));
    this.#servers = [];
  }

  async #checkOnce(): Promise<void> {
    if (this.#stopped) return;
    const kubelet = await socketIdentity(this.#kubeletSocket);
    const reachable = await Promise.all(this.#servers.map((server) => server.isReachable()));
    const served = reachable.every(Boolean) && namesOf(this.#wanted()) === namesOf(this.#resources);
    if (kubelet !== null && kubelet === this.#registeredWith && served) return;
    this.#setRegistered(null);
    if (!served || this.#servers.length === 0) await this.#serve();
    if (kubelet === null) return;
    await Promise.all(this.#resources.map((resource) => register(this.#kubeletSocket, resource)));
    this.#setRegistered(kubelet);
    this.#options.log.info(
      { resources: this.#resources.map(({ resource }) => resource) },
      'registered with the kubelet',
    );
  }

  #setRegistered(identity: string | null): void {
    const changed = (this.#registeredWith === null) !== (identity === null);
    this.#registeredWith = identity;
    if (changed) this.#options.onRegistered?.(identity !== null);
  }

  async #serve(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    this.#resources = this.#wanted();
    this.#servers = this.#resources.map(
      (resource) => new PluginServer(resource, this.#options.directory, this.#options.log),
    );
    await Promise.all(this.#servers.map((server) => server.start()));
  }

  #wanted(): readonly PluginResource[] {
    const { calls, others } = this.#options;
    const own = KINDS.map((kind) => ({
      resource: RESOURCE_NAME[kind],
      socket: PLUGIN_SOCKET[kind],
      calls: calls[kind],
    }));
    return [...own, ...(others?.() ?? [])];
  }
}

function namesOf(resources: readonly PluginResource[]): string {
  return resources.map(({ resource }) => resource).join(' ');
}
