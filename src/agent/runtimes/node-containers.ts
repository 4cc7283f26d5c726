import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Turn } from '../../host/turn.js';
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
    const place = this.#placeOf(pid);
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
    const place = this.#placeOf(container.pid);
    if (place?.containerId !== container.id) return [];
    const listed = await cgroupProcesses(this.#options.cgroups, place);
    // The agent may see another part of the cgroup tree than the one of the path.
    return listed?.includes(container.pid) === true
      ? listed
      : (await this.#placed()).filter(({ containerId: id }) => id === container.id).map(({ pid }) => pid);
  }

  /** Host pids of all processes in the cgroups of pods and their sandboxes, by pod UID. Does not query the runtime. */
  async pidsByPod(): Promise<ReadonlyMap<string, readonly number[]>> {
    const pids = new Map<string, number[]>();
    for (const { pid, podUid } of await this.#placed())
      if (podUid !== null) pids.set(podUid, [...(pids.get(podUid) ?? []), pid]);
    return pids;
  }

  close(): void {
    const runtime = this.#runtime;
    this.#runtime = null;
    void runtime?.then(
      (connected) => connected.close(),
      () => undefined,
    );
  }

  /** The machine's processes that are in containers, by ascending pid. */
  async #placed(): Promise<(CgroupPlace & { readonly pid: number })[]> {
    const found: (CgroupPlace & { readonly pid: number })[] = [];
    const turn = new Turn();
    for (const name of await readdir(this.#options.processes)) {
      const pid = Number(name);
      const place = Number.isInteger(pid) ? this.#placeOf(pid) : null;
      if (place !== null) found.push({ ...place, pid });
      if (turn.isOver()) await turn.pass();
    }
    return found.sort((a, b) => a.pid - b.pid);
  }

  /** Reads at once: these files never wait, and five steps through Node's pool for each cost much more. */
  #placeOf(pid: number): CgroupPlace | null {
    try {
      return parseProcCgroup(
        readFileSync(join(this.#options.processes, String(pid), 'cgroup'), 'utf8'),
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
