import { NO_SLICES, steer, stepCorrection, withCorrection, type SteeringState } from './steering.js';
import type { GpuProcess, GpuSample } from '../../gpu/sample.js';
import type { GpuSource } from './ports.js';
import type { ProcessOwners } from './process-owners.js';
import { GpuSlice } from './gpu-slice.js';
import type { Slice } from './slice.js';

/** Charges are compared with the driver's reports over this long. */
const ACCOUNT_MS = 5_000;

/** The last sample of a GPU, and the processes on it that belong to no container which was allocated this GPU. */
export interface GpuState {
  readonly sample: GpuSample;
  /** Of every process on it, as the driver lists them. */
  readonly processMemoryBytes: number;
  readonly foreignProcesses: readonly GpuProcess[];
  /** Foreign processes that belong to containers on other GPUs. */
  readonly trespassers: readonly { readonly allocation: string; readonly pid: number }[];
}

/**
 * One GPU and the containers on it. `takeSample` asks the driver about once a second which processes use the GPU, and
 * whose they are. `tick` reads counters and steers, ten times a second while there is something to steer; it calls
 * neither driver nor kubelet and never waits.
 */
export class GpuMonitor {
  readonly uuid: string;
  readonly #source: GpuSource;
  readonly #owners: ProcessOwners;
  #gpuSlices: readonly GpuSlice[] = [];
  #steering: SteeringState = NO_SLICES;
  #state: GpuState | null = null;
  #foreignPpm = 0;
  #tickAtNs: bigint | null = null;
  #sampledAtNs: bigint | null = null;
  #accountMs = 0;
  #busy = false;
  #crowd = 0;
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

  /** As of the last sample; null before the first that succeeded. */
  get state(): GpuState | null {
    return this.#state;
  }

  /** Samples that have ended, with success or not. */
  get samples(): number {
    return this.#samples;
  }

  get failedSamples(): number {
    return this.#failedSamples;
  }

  /** Every process on it at the last sample. */
  get pids(): readonly number[] {
    const ours = this.#gpuSlices.flatMap(({ processes }) => processes);
    return [...ours, ...(this.#state?.foreignProcesses ?? [])].map(({ pid }) => pid);
  }

  /** True while a tick may change something: a container that is paced used the GPU lately. */
  get busy(): boolean {
    return this.#busy;
  }

  /** Containers that the last tick read and may have told something. */
  get crowd(): number {
    return this.#crowd;
  }

  /** True when the GPU was idle in the last sample, and no paced container has used it since. */
  get idle(): boolean {
    return !this.#busy && this.#state?.sample.utilizationPercent === 0;
  }

  /** The slices of this node, of which those on this GPU are kept. */
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

  /** Steers. `nowNs` of CLOCK_MONOTONIC; the next tick is `nextMs` later, or this one was the last for a while. */
  tick(nowNs: bigint, nextMs: number): void {
    const elapsedNs = this.#tickAtNs === null ? 0 : Number(nowNs - this.#tickAtNs);
    this.#tickAtNs = nowNs;
    const present = this.#gpuSlices.filter((gpuSlice) => gpuSlice.present && gpuSlice.paced);
    this.#crowd = present.length;
    if (present.length === 0) {
      this.#busy = false;
      this.#steering = NO_SLICES;
      return;
    }
    const ticks = present.flatMap((gpuSlice) => {
      const tick = gpuSlice.tick(nowNs);
      return tick === null ? [] : [{ gpuSlice, tick }];
    });
    const { state, decisions } = steer(this.#steering, {
      elapsedNs,
      slices: ticks.map(({ tick }) => tick),
      foreignPpm: this.#foreignPpm,
    });
    this.#steering = state;
    this.#busy = decisions.some(({ active }) => active);
    decisions.forEach((decision, at) => ticks[at]?.gpuSlice.tell(decision, nowNs, nextMs));
  }

  /**
   * Asks the driver; rejects with its error, and everything stays as it was then. `nowNs` and `nowMs` are functions
   * since asking takes time.
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
    // On an idle GPU, allocations during the driver call are rare; the next sample corrects them.
    const heldBefore = this.idle ? null : new Map(moving.map((gpuSlice) => [gpuSlice, gpuSlice.held()]));
    const processes = await this.#source.processes(this.uuid);
    const heldAfter = new Map(moving.map((gpuSlice) => [gpuSlice, gpuSlice.held()]));
    const sample = await this.#source.sample(this.uuid);
    await this.#owners.learn(
      processes.map(({ pid }) => pid),
      nowMs(),
    );
    const atNs = nowNs();
    const elapsedNs = this.#sampledAtNs === null ? 0 : Number(atNs - this.#sampledAtNs);
    this.#sampledAtNs = atNs;
    const byOwner = this.#byOwner(processes);
    // A GPU that works for nobody: this driver, or this agent, does not see who uses it.
    const lists = processes.length > 0 || sample.utilizationPercent === 0;
    for (const gpuSlice of this.#gpuSlices) gpuSlice.see(byOwner.get(gpuSlice.slice.id) ?? [], elapsedNs, lists);
    for (const gpuSlice of limited) {
      if (heldAfter.has(gpuSlice))
        gpuSlice.chargeOverhead((heldBefore ?? heldAfter).get(gpuSlice) ?? null, heldAfter.get(gpuSlice) ?? null);
      else gpuSlice.watchOverhead();
    }
    const foreignProcesses = byOwner.get(null) ?? [];
    const trespassers = foreignProcesses.flatMap(({ pid }) => {
      const owner = this.#owners.ownerOf(pid);
      return owner === null ? [] : [{ allocation: owner.allocation, pid }];
    });
    this.#foreignPpm = foreignPpm(foreignProcesses, this.#state?.foreignProcesses ?? []);
    const processMemoryBytes = processes.reduce((sum, { usedMemoryBytes }) => sum + (usedMemoryBytes ?? 0), 0);
    this.#state = { sample: { ...sample, atMs: nowMs() }, processMemoryBytes, foreignProcesses, trespassers };
    this.#accountMs += elapsedNs / 1e6;
    if (this.#accountMs >= ACCOUNT_MS) this.#closeAccounts();
  }

  #byOwner(processes: readonly GpuProcess[]): Map<string | null, GpuProcess[]> {
    const here = new Set(this.#gpuSlices.map(({ slice }) => slice.id));
    const byOwner = new Map<string | null, GpuProcess[]>();
    for (const process of processes) {
      const allocation = this.#owners.ownerOf(process.pid)?.allocation ?? null;
      // A process of a container on other GPUs is a foreign process here.
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

/**
 * What processes of no container use, in ppm of the GPU. Only of those that were there at the look before: a
 * container's own process may be listed once before its greeting has come, and once more when it has ended and its
 * slice is gone, with all that it used until then.
 */
function foreignPpm(foreignProcesses: readonly GpuProcess[], before: readonly GpuProcess[]): number {
  const known = new Set(before.map(({ pid }) => pid));
  const percent = foreignProcesses.reduce(
    (sum, { pid, utilizationPercent }) => sum + (known.has(pid) ? (utilizationPercent ?? 0) : 0),
    0,
  );
  return Math.min(1_000_000, percent * 10_000);
}
