import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readLimitAnnotations } from '../limits/live-limits.js';
import { parseDriverVersion, type VcudaConfig } from '../../../abi/vcuda-config.js';
import type { Clock } from '../../../host/clock.js';
import { LimitedLog } from '../../../host/limited-log.js';
import type { Log } from '../../../host/log.js';
import { CompatRegistry, type Registered } from './compat-registry.js';
import type { ContainerKnowledge } from '../../runtimes/index.js';
import type { PodLimitAnnotations } from '../ports.js';
import { REGISTRATION_PACE, RegistrationPace } from './registration-pace.js';
import { ConnectionBudget, SliceSocket } from './slice-socket.js';

/** The amounts that the original's plugin gave to a container. */
export interface LegacyContainer {
  readonly podUid: string;
  readonly container: string;
  /** Cores of a GPU. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** The GPUs that it was given; null if they are not known. */
  readonly gpuUuids: readonly string[] | null;
}

export interface LegacyPodsOptions {
  /** `--virtual-manager-path`, the same as the original's. */
  readonly path: string;
  readonly knowledge: ContainerKnowledge;
  readonly limitAnnotations: PodLimitAnnotations;
  readonly driverVersion: () => string | null;
  readonly pace?: RegistrationPace;
  readonly clock: Clock;
  readonly log: Log;
}

/** UIDs of pods from the API server, and of static pods, for which the kubelet uses a hash. */
const POD_UID = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$/;
const MAX_CONNECTIONS = 4_096;

interface Served {
  containers: readonly LegacyContainer[];
  readonly socket: SliceSocket;
  readonly registry: CompatRegistry;
}

/**
 * `<path>/<pod UID>/`: the directories of the original's layout, one for all containers of a pod. Each new process in
 * such a container registers over the `vcuda.sock` there, so the agent serves it until the pod ends.
 */
export class LegacyPods {
  readonly #options: LegacyPodsOptions;
  readonly #served = new Map<string, Served>();
  readonly #budget = new ConnectionBudget(MAX_CONNECTIONS);
  readonly #pace: RegistrationPace;

  constructor(options: LegacyPodsOptions) {
    this.#options = options;
    this.#pace = options.pace ?? new RegistrationPace(options.clock, REGISTRATION_PACE);
  }

  /** The containers that are served. */
  get containers(): readonly LegacyContainer[] {
    return [...this.#served.values()].flatMap(({ containers }) => containers);
  }

  /** Serves the pods of these containers. A directory that cannot be used is logged and retried at the next call. */
  async open(containers: readonly LegacyContainer[]): Promise<void> {
    const byPod = new Map<string, LegacyContainer[]>();
    for (const entry of containers) byPod.set(entry.podUid, [...(byPod.get(entry.podUid) ?? []), entry]);
    for (const [podUid, ofPod] of byPod) {
      if (!POD_UID.test(podUid)) continue;
      try {
        await this.#openPod(podUid, ofPod);
      } catch (error) {
        this.#options.log.error(
          { err: error, podUid },
          'the directory of a pod of the previous device plugin could not be served; retrying',
        );
      }
    }
  }

  /** Stops serving all other pods and removes their directories. */
  async keepOnly(podUids: ReadonlySet<string>): Promise<void> {
    for (const [podUid, served] of this.#served) {
      if (podUids.has(podUid)) continue;
      this.#served.delete(podUid);
      await served.socket.stop();
      await served.registry.clear();
    }
    for (const name of await readdir(this.#options.path)) {
      if (!POD_UID.test(name) || podUids.has(name)) continue;
      await rm(join(this.#options.path, name), { recursive: true, force: true });
      this.#options.log.info({ podUid: name }, 'removed the directory of a pod of the previous device plugin');
    }
  }

  async close(): Promise<void> {
    for (const { socket, registry } of this.#served.values()) {
      await socket.stop();
      await registry.clear();
    }
    this.#served.clear();
  }

  async #openPod(podUid: string, containers: readonly LegacyContainer[]): Promise<void> {
    const known = this.#served.get(podUid);
    if (known !== undefined) {
      known.containers = containers;
      if (!known.socket.open) await known.socket.start();
      return;
    }
    const { clock, knowledge } = this.#options;
    const log = new LimitedLog(this.#options.log, clock);
    const directory = join(this.#options.path, podUid);
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o755);
    const registry: CompatRegistry = new CompatRegistry({
      sliceDirectory: directory,
      knowledge,
      config: (registered) => this.#configOf(podUid, registered),
      greeted: () => [],
      turn: () => this.#pace.turn(),
      onFailure: (error) => log.error({ err: error, podUid }, 'a registration failed'),
    });
    const socket = new SliceSocket({
      path: join(directory, 'vcuda.sock'),
      // Only this project's library sends greetings, and these containers do not have it.
      handlers: { greeted: () => () => undefined, service: (peer) => registry.service(peer) },
      budget: this.#budget,
      clock,
      log,
    });
    await socket.start();
    this.#served.set(podUid, { containers, socket, registry });
  }

  /** The configuration that the original wrote for the container that registered. */
  async #configOf(podUid: string, { name, containerId }: Registered): Promise<VcudaConfig> {
    const { knowledge, limitAnnotations, driverVersion } = this.#options;
    const containers = this.#served.get(podUid)?.containers ?? [];
    const called = containers.length > 1 && containerId !== null ? await knowledge.nameOf(containerId) : null;
    const found = containers.find(({ container }) => container === called || container === name) ?? containers[0];
    const containerName = found?.container ?? name;
    const annotations = limitAnnotations.annotations(podUid) ?? new Map<string, string>();
    return {
      podUid,
      containerName,
      busId: '',
      gpuMemoryBytes: found?.memoryBytes ?? 0,
      cores: found?.cores ?? 0,
      softLimit: readLimitAnnotations(annotations, containerName).request.softLimit,
      driverVersion: parseDriverVersion(driverVersion() ?? ''),
    };
  }
}
