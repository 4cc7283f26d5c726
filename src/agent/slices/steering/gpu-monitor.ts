import { agreedCorrection, NO_SLICES, steer, withCorrection, type SliceTick, type SteeringState } from './steering.js';
import type { GpuSample } from '../../../gpu/sample.js';
import { GpuSampler, type GpuSource } from '../../gpus/index.js';
import type { ProcessOwners } from '../process-owners.js';
import { partByOwner, unsteeredUse, type SampledProcesses } from './sampled-processes.js';
import { GpuSlice } from './gpu-slice.js';
import type { Slice } from '../slice.js';

/** The interval over which charges are compared with the driver's reports. */
const ACCOUNT_MS = 5_000;

/** The last sample of a GPU, and the owners of its processes. */
export interface GpuState extends SampledProcesses {
  readonly sample: GpuSample;
  /** Memory of all its processes, as the driver lists them. */
  readonly processMemoryBytes: number;
}

/**
 * One GPU and the containers on it. `takeSample` queries the driver about once a second for the processes that use the
 * GPU, and finds their containers. `tick` reads counters and steers, ten times a second while a container needs it; it
 * calls neither driver nor kubelet and never waits.
 */
export class GpuMonitor {
  readonly uuid: string;
  readonly #sampler: GpuSampler;
  readonly #owners: ProcessOwners;
  #gpuSlices: readonly GpuSlice[] = [];
  #allocations: ReadonlySet<string> = new Set();
  #steering: SteeringState = NO_SLICES;
  #state: GpuState | null = null;
  #unsteered = { foreignPpm: 0, foreignProcesses: 0 };
  #tickAtNs: bigint | null = null;
  #sampledAtNs: bigint | null = null;
  #accountMs = 0;
  #busy = false;
  #presentCount = 0;
  #samples = 0;
  #failedSamples = 0;

  constructor(uuid: string, source: GpuSource, owners: ProcessOwners) {
    this.uuid = uuid;
    this.#sampler = new GpuSampler(uuid, source);
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
    return (this.#sampler.last?.processes ?? []).map(({ pid }) => pid);
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
   * Whether the driver shows other processes than at the last sample; never rejects. Looks for GPU time that no launch
   * explains, because the last sample may have been before it and the next one may be after it.
   */
  async hasChanged(nowNs: () => bigint): Promise<boolean> {
    if (this.#gpuSlices.length === 0) return false;
    const processes = await this.#sampler.processes();
    if (processes === null) return false;
    const paced = this.#gpuSlices.filter((gpuSlice) => gpuSlice.present && gpuSlice.paced);
    if (paced.length > 0 && this.#sampledAtNs !== null) {
      const { byAllocation } = partByOwner(processes, this.#owners, this.uuid, this.#allocations);
      const elapsedNs = Number(nowNs() - this.#sampledAtNs);
      for (const gpuSlice of paced) gpuSlice.updateBetween(byAllocation.get(gpuSlice.slice.id) ?? [], elapsedNs);
    }
    return this.#sampler.differs(processes);
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
    this.#allocations = new Set(gpuSlices.map(({ slice }) => slice.id));
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
    const read: GpuSlice[] = [];
    const slices: SliceTick[] = [];
    for (const gpuSlice of present) {
      const tick = gpuSlice.tick(nowNs);
      if (tick === null) continue;
      read.push(gpuSlice);
      slices.push(tick);
    }
    const { state, decisions } = steer(this.#steering, { elapsedNs, slices, ...this.#unsteered });
    this.#steering = state;
    this.#busy = decisions.some(({ active }) => active);
    decisions.forEach((decision, at) => read[at]?.publish(decision, nowNs, nextMs));
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
    const { processes, sample, processMemoryBytes } = await this.#sampler.take();
    const heldAfter = new Map(moving.map((gpuSlice) => [gpuSlice, gpuSlice.held()]));
    await this.#owners.learn(
      processes.map(({ pid }) => pid),
      nowMs(),
    );
    const atNs = nowNs();
    const elapsedNs = this.#sampledAtNs === null ? 0 : Number(atNs - this.#sampledAtNs);
    this.#sampledAtNs = atNs;
    const parted = partByOwner(processes, this.#owners, this.uuid, this.#allocations);
    // A busy GPU without processes: this driver, or this agent, does not see the processes.
    const lists = processes.length > 0 || sample.utilizationPercent === 0;
    for (const gpuSlice of this.#gpuSlices)
      gpuSlice.update(parted.byAllocation.get(gpuSlice.slice.id) ?? [], elapsedNs, lists);
    for (const [gpuSlice, held] of heldAfter)
      gpuSlice.chargeOverhead((heldBefore ?? heldAfter).get(gpuSlice) ?? null, held);
    for (const gpuSlice of limited) if (!heldAfter.has(gpuSlice)) gpuSlice.watchOverhead();
    this.#unsteered = unsteeredUse(parted.unsteered, this.#state?.unsteered ?? []);
    this.#state = { ...parted, sample: { ...sample, atMs: nowMs() }, processMemoryBytes };
    this.#accountMs += elapsedNs / 1e6;
    if (this.#accountMs >= ACCOUNT_MS) this.#closeAccounts();
  }

  #closeAccounts(): void {
    this.#accountMs = 0;
    for (const gpuSlice of this.#gpuSlices) {
      const accounts = gpuSlice.closeAccount();
      const before = this.#steering.get(gpuSlice.slice.id);
      if (accounts === null || before === undefined) continue;
      const correctionPpm = agreedCorrection(before.correctionPpm, ...accounts);
      this.#steering = withCorrection(this.#steering, gpuSlice.slice.id, correctionPpm);
    }
  }
}
