import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cgroupProcesses } from './cgroup-processes.js';
import { parseProcCgroup, type CgroupPlace } from './cgroup-path.js';
import { ownKubeletRoots } from './own-roots.js';
import {
  RuntimeError,
  type Container,
  type ContainerQuery,
  type ContainerRuntime,
  type InspectedContainer,
  type RuntimeVersion,
} from './container.js';

export interface NodeContainersOptions {
  /** Finds the runtime; called again whenever the connection was lost. */
  readonly connect: () => Promise<ContainerRuntime>;
  /** The /proc that shows the processes of the whole machine. */
  readonly processes?: string;
  /** Mount point of the machine's cgroups. */
  readonly cgroups?: string;
}

/**
 * The containers of this node, by process and by pod. Connects to the runtime at the first query, and again when it
 * stops answering: it may have been restarted, updated to another protocol, or replaced.
 */
export class NodeContainers {
  readonly #options: Required<NodeContainersOptions>;
  #runtime: Promise<ContainerRuntime> | null = null;

  constructor(options: NodeContainersOptions) {
    this.#options = { processes: '/proc', cgroups: '/sys/fs/cgroup', ...options };
  }

  version(): Promise<RuntimeVersion> {
    return this.#ask((runtime) => runtime.version());
  }

  inspect(containerId: string): Promise<InspectedContainer | null> {
    return this.#ask((runtime) => runtime.inspect(containerId));
  }

  list(query: ContainerQuery = {}): Promise<Container[]> {
    return this.#ask((runtime) => runtime.list(query));
  }

  /** The container of a host process; null if it is in none, or has ended. */
  async ofPid(pid: number): Promise<InspectedContainer | null> {
    const place = await this.#placeOf(pid);
    return place === null ? null : this.inspect(place.containerId);
  }

  /** The latest container of that name in a pod: the running one, or else the last that ran. */
  async ofPod(query: ContainerQuery & { readonly containerName: string }): Promise<InspectedContainer | null> {
    const found = await this.list(query);
    const newest = (a: Container, b: Container) =>
      Number(b.state === 'running') - Number(a.state === 'running') ||
      b.attempt - a.attempt ||
      b.createdAtMs - a.createdAtMs;
    const [latest] = found.sort(newest);
    return latest === undefined ? null : this.inspect(latest.id);
  }

  /** Host pids of all processes of a container, ascending; empty if it does not run. */
  async pids(containerId: string): Promise<number[]> {
    const container = await this.inspect(containerId);
    if (container === null || container.pid === null) return [];
    const place = await this.#placeOf(container.pid);
    if (place?.containerId !== container.id) return [];
    const listed = await cgroupProcesses(this.#options.cgroups, place);
    // The agent may see another part of the cgroup tree than the one of the path.
    return listed?.includes(container.pid) === true
      ? listed
      : this.#pidsWhere(({ containerId: id }) => id === container.id);
  }

  /** Host pids of all processes in the cgroups of a pod, including its sandbox. Does not query the runtime. */
  pidsOfPod(podUid: string): Promise<number[]> {
    return this.#pidsWhere((place) => place.podUid === podUid);
  }

  close(): void {
    const runtime = this.#runtime;
    this.#runtime = null;
    void runtime?.then(
      (connected) => connected.close(),
      () => undefined,
    );
  }

  async #pidsWhere(isMeant: (place: CgroupPlace) => boolean): Promise<number[]> {
    const pids: number[] = [];
    for (const name of await readdir(this.#options.processes)) {
      const pid = Number(name);
      const place = Number.isInteger(pid) ? await this.#placeOf(pid) : null;
      if (place !== null && isMeant(place)) pids.push(pid);
    }
    return pids.sort((a, b) => a - b);
  }

  async #placeOf(pid: number) {
    try {
      return parseProcCgroup(
        await readFile(join(this.#options.processes, String(pid), 'cgroup'), 'utf8'),
        ownKubeletRoots(),
      );
    } catch (error) {
      // The process has ended.
      if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
      throw error;
    }
  }

  /** Queries the runtime; if it does not answer, reconnects and queries once more. */
  async #ask<T>(question: (runtime: ContainerRuntime) => Promise<T>): Promise<T> {
    const known = this.#runtime;
    if (known !== null) {
      try {
        return await question(await known);
      } catch (error) {
        if (!(error instanceof RuntimeError && error.code === 'unavailable')) throw error;
        if (this.#runtime === known) this.close();
      }
    }
    const connecting = (this.#runtime ??= this.#connect());
    return question(await connecting);
  }

  #connect(): Promise<ContainerRuntime> {
    const connecting = this.#options.connect();
    connecting.catch(() => {
      if (this.#runtime === connecting) this.#runtime = null;
    });
    return connecting;
  }
}
