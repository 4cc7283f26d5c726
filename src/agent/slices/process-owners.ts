import { processStat } from '../../host/process-stat.js';
import type { ContainerKnowledge, ProcessPlace } from '../runtimes/index.js';
import type { SliceOwner } from './ports.js';
import type { SliceSpec } from './slice.js';
import type { Slices } from './slices.js';

/** The owner of a process: known from its greeting, or from its control group. */
export interface ProcessOwner {
  readonly allocation: string;
  readonly greeted: boolean;
}

/** A container that the original's plugin started. */
export interface AdoptedContainer {
  readonly podUid: string;
  readonly container: string;
  /** Null if its GPUs are not known. */
  readonly gpuUuids: readonly string[] | null;
}

interface Found {
  /** Distinguishes the process from a later one with the same pid. */
  readonly startTicks: number | null;
  readonly allocation: string | null;
  /** Set if no slice of ours has it, but a container of the original's plugin. */
  readonly adopted: AdoptedContainer | null;
  readonly foundAt: number;
}

/** A process without an owner may be in a container that the agent learns of a moment later. */
const FORGET_FOREIGN_MS = 10_000;

/**
 * The owners of the processes on the GPUs. Processes that sent a greeting are known at once; the control group of any
 * other process names its pod, and so its slice. Each process is looked up once, so the cost depends on the GPU
 * processes without the control library.
 */
export class ProcessOwners {
  readonly #slices: Slices;
  readonly #knowledge: ContainerKnowledge;
  /** The containers that share a slice. */
  readonly usersOf: (spec: SliceSpec) => readonly SliceOwner[];
  /** The containers of the original's plugin that still run. */
  readonly #adopted: () => readonly AdoptedContainer[];
  /** Is told of each process of a slice that did not greet. */
  readonly #onFound: (allocation: string, pid: number) => void;
  readonly #found = new Map<number, Found>();

  /** Without `usersOf`, each slice belongs to its owner alone. */
  constructor(
    slices: Slices,
    knowledge: ContainerKnowledge,
    usersOf: (spec: SliceSpec) => readonly SliceOwner[] = ({ owner }) => [owner],
    adopted: () => readonly AdoptedContainer[] = () => [],
    onFound: (allocation: string, pid: number) => void = () => undefined,
  ) {
    this.#slices = slices;
    this.#knowledge = knowledge;
    this.usersOf = usersOf;
    this.#adopted = adopted;
    this.#onFound = onFound;
  }

  /** The owner as far as known; null for a foreign process. */
  ownerOf(pid: number): ProcessOwner | null {
    const session = this.#slices.sessionOf(pid);
    if (session !== null) return { allocation: session.allocation, greeted: true };
    const allocation = this.#found.get(pid)?.allocation ?? null;
    return allocation === null || !this.#slices.started.has(allocation) ? null : { allocation, greeted: false };
  }

  /** The container of the original's plugin that has this GPU and the process; null for every other process. */
  adoptedOf(pid: number, gpuUuid: string): AdoptedContainer | null {
    if (this.ownerOf(pid) !== null) return null;
    const found = this.#found.get(pid)?.adopted ?? null;
    if (found === null) return null;
    const now = this.#adopted().find((known) => known.podUid === found.podUid && known.container === found.container);
    return now !== undefined && (now.gpuUuids === null || now.gpuUuids.includes(gpuUuid)) ? now : null;
  }

  /**
   * Looks up processes without a greeting, and drops results of earlier processes with the same pids. `now` in
   * milliseconds.
   */
  async learn(pids: readonly number[], now: number): Promise<void> {
    for (const pid of pids) {
      if (this.#slices.sessionOf(pid) !== null) continue;
      const startTicks = processStat(pid)?.startTicks ?? null;
      const known = this.#found.get(pid);
      const stands =
        known !== undefined &&
        known.startTicks === startTicks &&
        (known.allocation !== null || known.adopted !== null || now - known.foundAt < FORGET_FOREIGN_MS);
      if (stands) continue;
      const place = await this.#placeOf(pid);
      this.#found.set(pid, { startTicks, ...place, foundAt: now });
      if (place.allocation !== null) this.#onFound(place.allocation, pid);
    }
  }

  /** Drops processes that no GPU lists any more. */
  keepOnly(pids: ReadonlySet<number>): void {
    for (const pid of this.#found.keys()) if (!pids.has(pid)) this.#found.delete(pid);
  }

  async #placeOf(pid: number): Promise<Pick<Found, 'allocation' | 'adopted'>> {
    const place = await this.#knowledge.placeOf(pid);
    if (place === null) return { allocation: null, adopted: null };
    const allocation = await this.#allocationAt(place);
    return { allocation, adopted: allocation === null ? await this.#adoptedAt(place) : null };
  }

  async #adoptedAt({ podUid, containerId }: ProcessPlace): Promise<AdoptedContainer | null> {
    const ofPod = this.#adopted().filter((known) => known.podUid === podUid);
    if (ofPod.length <= 1) return ofPod[0] ?? null;
    const name = await this.#knowledge.nameOf(containerId);
    return ofPod.find(({ container }) => container === name) ?? null;
  }

  async #allocationAt(place: ProcessPlace): Promise<string | null> {
    const exact = this.#knowledge.sliceOf(place.containerId);
    if (exact !== null && this.#slices.started.has(exact)) return exact;
    if (place.podUid === null) return null;
    const ofPod = [...this.#slices.started.values()].flatMap(({ id, spec }) => {
      const containers = this.usersOf(spec).filter(({ podUid }) => podUid === place.podUid);
      return containers.length === 0 ? [] : [{ id, containers }];
    });
    const [only] = ofPod;
    // A pod that was admitted while the original's plugin was replaced may have containers of both.
    const alone = !this.#adopted().some(({ podUid }) => podUid === place.podUid);
    if (ofPod.length === 0 || (ofPod.length === 1 && alone)) return only?.id ?? null;
    const name = await this.#knowledge.nameOf(place.containerId);
    return ofPod.find(({ containers }) => containers.some(({ container }) => container === name))?.id ?? null;
  }
}
