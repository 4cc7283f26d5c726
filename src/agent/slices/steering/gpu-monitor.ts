import { NO_SLICES, steer, stepCorrection, withCorrection, type SteeringState } from './steering.js';
import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { FileParts, readParts } from '../../../host/file-parts.js';
import type { GpuSource } from '../ports.js';
import type { AdoptedContainer, ProcessOwners } from '../process-owners.js';
import { GpuSlice } from './gpu-slice.js';
import type { Slice } from '../slice.js';

/** The interval over which charges are compared with the driver's reports. */
const ACCOUNT_MS = 5_000;

/** Processes that hold this much more memory than at the last sample are sampled again. */
const GROWTH_BYTES = 64 * 2 ** 20;

/** A process of a container that the original's plugin started. */
export interface AdoptedProcess {
  readonly owner: AdoptedContainer;
  readonly process: GpuProcess;
}

/** The last sample of a GPU, and its processes that belong to no container with an allocation on this GPU. */
export interface GpuState {
  readonly sample: GpuSample;
  /** Memory of all its processes, as the driver lists them. */
  readonly processMemoryBytes: number;
  readonly foreignProcesses: readonly GpuProcess[];
  /** Processes of containers that the original's plugin started, and that have this GPU. */
  readonly adoptedProcesses: readonly AdoptedProcess[];
  /** Foreign processes that belong to containers on other GPUs. */
  readonly processesOfOtherGpus: readonly { readonly allocation: string; readonly pid: number }[];
}

/**
 * One GPU and the containers on it. `takeSample` queries the driver about once a second for the processes that use the
 * GPU, and finds their containers. `tick` reads counters and steers, ten times a second while a container needs it; it
 * calls neither driver nor kubelet and never waits.
 */
export class GpuMonitor {
  readonly uuid: string;
  readonly #source: GpuSource;
  readonly #owners: ProcessOwners;
  #gpuSlices: readonly GpuSlice[] = [];
  #counters = new FileParts([]);
  #held = new FileParts([]);
  #steering: SteeringState = NO_SLICES;
  #state: GpuState | null = null;
  #foreignPpm = 0;
  #tickAtNs: bigint | null = null;
  #sampledAtNs: bigint | null = null;
  #accountMs = 0;
  #busy = false;
  #presentCount = 0;
  #samples = 0;
  #failedSamples = 0;

  constructor(uuid: string, source: GpuSource, owners: ProcessOwners) {
    this.uuid = uuid;
    this.#source = source;
    this.#owners = owners;
  }

  get gpuSlices(): readonly GpuSlice[] {
    return this.#gpuSlices;
  }

  /** As of the last successful sample; null before the first. */
  get state(): GpuState | null {
    return this.#state;
  }

  /** Number of samples that have ended, successful or not. */
  get samples(): number {
    return this.#samples;
  }

  get failedSamples(): number {
    return this.#failedSamples;
  }

  /** All its processes at the last sample. */
  get pids(): readonly number[] {
    const ours = this.#gpuSlices.flatMap(({ processes }) => processes);
    const adopted = (this.#state?.adoptedProcesses ?? []).map(({ process }) => process);
    return [...ours, ...adopted, ...(this.#state?.foreignProcesses ?? [])].map(({ pid }) => pid);
  }

  /** True while a tick may change something: a limited container used the GPU lately. */
  get busy(): boolean {
    return this.#busy;
  }

  /** Number of containers that the last tick read. */
  get presentCount(): number {
    return this.#presentCount;
  }

  /** True when the GPU was idle in the last sample and no limited container has used it since. */
  get idle(): boolean {
    return !this.#busy && this.#state?.sample.utilizationPercent === 0;
  }

  /**
   * Whether the driver lists other processes, or more memory of processes, than at the last sample. Asks for nothing
   * else, so that a GPU with containers can be asked between two samples. After a failure, the next sample tries again.
   */
  async hasChanged(): Promise<boolean> {
    if (this.#gpuSlices.length === 0) return false;
    try {
      const known = new Set(this.pids);
      const processes = await this.#source.processes(this.uuid);
      if (processes.length !== known.size || processes.some(({ pid }) => !known.has(pid))) return true;
      return memoryOf(processes) > (this.#state?.processMemoryBytes ?? 0) + GROWTH_BYTES;
    } catch {
      return false;
    }
  }

  /** Updates the slices on this GPU; `slices` are all of this node. */
  follow(slices: Iterable<Slice>): void {
    const known = new Map(this.#gpuSlices.map((gpuSlice) => [gpuSlice.slice, gpuSlice]));
    const gpuSlices: GpuSlice[] = [];
    for (const slice of slices) {
      const index = slice.spec.devices.findIndex(({ uuid }) => uuid === this.uuid);
      if (index < 0) continue;
      const gpuSlice = known.get(slice);
      gpuSlices.push(gpuSlice?.index === index ? gpuSlice : new GpuSlice(slice, index));
    }
    this.#gpuSlices = gpuSlices;
  }

  /** Steers. `nowNs` is CLOCK_MONOTONIC; the next tick is `nextMs` later at the earliest. */
  tick(nowNs: bigint, nextMs: number): void {
    const elapsedNs = this.#tickAtNs === null ? 0 : Number(nowNs - this.#tickAtNs);
    this.#tickAtNs = nowNs;
    const present = this.#gpuSlices.filter((gpuSlice) => gpuSlice.present && gpuSlice.paced);
    this.#presentCount = present.length;
    if (present.length === 0) {
      this.#busy = false;
      this.#steering = NO_SLICES;
      return;
    }
    this.#counters = readParts(
      this.#counters,
      present.map(({ countersPart }) => countersPart),
    );
    const ticks = present.flatMap((gpuSlice, at) => {
      const tick = gpuSlice.tick(nowNs, this.#counters.bytes(at));
      return tick === null ? [] : [{ gpuSlice, tick }];
    });
    const { state, decisions } = steer(this.#steering, {
      elapsedNs,
      slices: ticks.map(({ tick }) => tick),
      foreignPpm: this.#foreignPpm,
    });
    this.#steering = state;
    this.#busy = decisions.some(({ active }) => active);
    decisions.forEach((decision, at) => ticks[at]?.gpuSlice.publish(decision, nowNs, nextMs));
  }

  /**
   * Asks the driver; rejects with its error and then changes nothing. `nowNs` and `nowMs` are functions because the
   * call takes time.
   */
  async takeSample(nowNs: () => bigint, nowMs: () => number): Promise<void> {
    try {
      await this.#takeSample(nowNs, nowMs);
    } catch (error) {
      this.#failedSamples += 1;
      throw error;
    } finally {
      this.#samples += 1;
    }
  }

  async #takeSample(nowNs: () => bigint, nowMs: () => number): Promise<void> {
    const limited = this.#gpuSlices.filter(
      ({ present, live }) => live.memoryBytes !== null && (present || live.driverOverheadBytes > 0),
    );
    const moving = limited.filter(({ overheadMoves }) => overheadMoves);
    // On an idle GPU, allocations during the driver call are rare; the next sample corrects their effect.
    const heldBefore = this.idle ? null : new Map(moving.map((gpuSlice) => [gpuSlice, gpuSlice.held()]));
    // Both at once: the driver answers them with one list of calls.
    const [processes, sample] = await Promise.all([this.#source.processes(this.uuid), this.#source.sample(this.uuid)]);
    const heldAfter = new Map(moving.map((gpuSlice) => [gpuSlice, gpuSlice.held()]));
    await this.#owners.learn(
      processes.map(({ pid }) => pid),
      nowMs(),
    );
    const atNs = nowNs();
    const elapsedNs = this.#sampledAtNs === null ? 0 : Number(atNs - this.#sampledAtNs);
    this.#sampledAtNs = atNs;
    const byOwner = this.#byOwner(processes);
    // A busy GPU without processes: this driver, or this agent, does not see the processes.
    const lists = processes.length > 0 || sample.utilizationPercent === 0;
    for (const gpuSlice of this.#gpuSlices) gpuSlice.update(byOwner.get(gpuSlice.slice.id) ?? [], elapsedNs, lists);
    for (const [gpuSlice, held] of heldAfter)
      gpuSlice.chargeOverhead((heldBefore ?? heldAfter).get(gpuSlice) ?? null, held);
    this.#watchOverheads(limited.filter((gpuSlice) => !heldAfter.has(gpuSlice)));
    const others = byOwner.get(null) ?? [];
    const adoptedProcesses = others.flatMap((process): AdoptedProcess[] => {
      const owner = this.#owners.adoptedOf(process.pid, this.uuid);
      return owner === null ? [] : [{ owner, process }];
    });
    const adopted = new Set(adoptedProcesses.map(({ process }) => process));
    const foreignProcesses = others.filter((process) => !adopted.has(process));
    const processesOfOtherGpus = foreignProcesses.flatMap(({ pid }) => {
      const owner = this.#owners.ownerOf(pid);
      return owner === null ? [] : [{ allocation: owner.allocation, pid }];
    });
    this.#foreignPpm = foreignPpm(others, this.#unsteered());
    const processMemoryBytes = memoryOf(processes);
    this.#state = {
      sample: { ...sample, atMs: nowMs() },
      processMemoryBytes,
      foreignProcesses,
      adoptedProcesses,
      processesOfOtherGpus,
    };
    this.#accountMs += elapsedNs / 1e6;
    if (this.#accountMs >= ACCOUNT_MS) this.#closeAccounts();
  }

  /** The processes of the last sample that no slice of ours has. */
  #unsteered(): readonly GpuProcess[] {
    const { foreignProcesses = [], adoptedProcesses = [] } = this.#state ?? {};
    return [...foreignProcesses, ...adoptedProcesses.map(({ process }) => process)];
  }

  #watchOverheads(gpuSlices: readonly GpuSlice[]): void {
    this.#held = readParts(
      this.#held,
      gpuSlices.map(({ heldPart }) => heldPart),
    );
    for (const [at, gpuSlice] of gpuSlices.entries()) gpuSlice.watchOverhead(this.#held.bytes(at));
  }

  #byOwner(processes: readonly GpuProcess[]): Map<string | null, GpuProcess[]> {
    const here = new Set(this.#gpuSlices.map(({ slice }) => slice.id));
    const byOwner = new Map<string | null, GpuProcess[]>();
    for (const process of processes) {
      const allocation = this.#owners.ownerOf(process.pid)?.allocation ?? null;
      // A process of a container without an allocation here is a foreign process on this GPU.
      const key = allocation !== null && here.has(allocation) ? allocation : null;
      byOwner.set(key, [...(byOwner.get(key) ?? []), process]);
    }
    return byOwner;
  }

  #closeAccounts(): void {
    this.#accountMs = 0;
    for (const gpuSlice of this.#gpuSlices) {
      const account = gpuSlice.closeAccount();
      const before = this.#steering.get(gpuSlice.slice.id);
      if (account === null || before === undefined) continue;
      this.#steering = withCorrection(this.#steering, gpuSlice.slice.id, stepCorrection(before.correctionPpm, account));
    }
  }
}

function memoryOf(processes: readonly GpuProcess[]): number {
  return processes.reduce((sum, { usedMemoryBytes }) => sum + (usedMemoryBytes ?? 0), 0);
}

/**
 * GPU time of foreign processes, in ppm of the GPU. Counts only processes that the previous sample had too: a
 * container's own process may seem foreign in one sample before its greeting arrives, and in one sample after its slice
 * was removed; both samples would count all of its GPU time.
 */
function foreignPpm(foreignProcesses: readonly GpuProcess[], before: readonly GpuProcess[]): number {
  const known = new Set(before.map(({ pid }) => pid));
  const percent = foreignProcesses.reduce(
    (sum, { pid, utilizationPercent }) => sum + (known.has(pid) ? (utilizationPercent ?? 0) : 0),
    0,
  );
  return Math.min(1_000_000, percent * 10_000);
}
