import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { GpuMonitor } from './gpu-monitor.js';
import type { GpuSource } from '../../gpus/index.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slices } from '../slices.js';

export interface MonitorOptions {
  readonly slices: Slices;
  readonly owners: ProcessOwners;
  readonly source: GpuSource;
  /** UUIDs of the GPUs of this node; read at every tick. */
  readonly gpus: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Interval between two samples of a GPU: `--sample-period`. */
  readonly sampleMs: number;
  /** Called after each successful sample of a GPU. */
  readonly onSample?: (gpu: GpuMonitor) => void;
  /** CLOCK_MONOTONIC, with which the control library compares the time of publications. */
  readonly monotonicNs?: () => bigint;
}

/** Period of steering. */
const TICK_MS = 100;
/** Every this many ticks, the owners of ended processes are dropped. */
const TICKS_PER_SWEEP = 100;
/** Without active containers, only every tenth tick checks for some. */
const TICKS_AT_REST = 10;
/**
 * Beyond this many containers on a GPU, each is read less often, so that the cost per GPU is constant; with 32
 * containers the interval is 0.8 s.
 */
const CONTAINERS_PER_TICK = 4;
/**
 * Delays of samples, in parts of a period, used in turn. A report covers one short window, and programs often work in
 * periods: reports at even intervals might always see the same phase.
 */
const SAMPLE_DELAYS = [0, 0.3, 0.1, 0.4, 0.2];
/** An idle GPU is sampled this many times less often until a process greets, leaves, or is listed by the driver. */
const PERIODS_AT_REST = 4;

/**
 * Samples and steers all GPUs of the node with one timer and at most one running sample per GPU. The cost depends on
 * the number of GPUs, and by a few microseconds on each container.
 */
export class Monitor {
  readonly #options: MonitorOptions;
  readonly #nowNs: () => bigint;
  readonly #sampling = new Set<string>();
  /** GPUs whose process list is asked for, and whether a sample became due meanwhile. */
  readonly #checking = new Map<string, boolean>();
  readonly #failing = new Set<string>();
  /** By GPU: the session version at its last sample. */
  readonly #sampledSessionVersion = new Map<string, number>();
  #gpus: readonly GpuMonitor[] = [];
  #sliceVersion = -1;
  #ticks = 0;
  /** Number of ticks for each call of the timer: at rest, one call covers several ticks. */
  #stride = 1;
  #cancel: () => void = () => undefined;
  #leave: () => void = () => undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    this.#nowNs = options.monotonicNs ?? (() => process.hrtime.bigint());
  }

  /** In the driver's order, with the slices that are started now: a reader need not wait for the next tick. */
  get gpus(): readonly GpuMonitor[] {
    this.#follow();
    return this.#gpus;
  }

  start(): void {
    this.#setTimer(1);
    this.#leave = this.#options.slices.onChange(() => {
      if (this.#stride > 1) this.#setTimer(1);
    });
  }

  /** Starts no further samples; a running sample completes. */
  stop(): void {
    this.#leave();
    this.#cancel();
  }

  #setTimer(stride: number): void {
    this.#cancel();
    this.#stride = stride;
    this.#cancel = this.#options.clock.every(stride * TICK_MS, () => this.#tick());
  }

  /** Samples the GPUs of a slice now, because processes of its container have ended. */
  sampleNow(allocation: string): void {
    for (const gpu of this.gpus) if (gpu.gpuSlices.some(({ slice }) => slice.id === allocation)) this.#takeSample(gpu);
  }

  #tick(): void {
    const turns = Array.from({ length: this.#stride }, (_, at) => this.#ticks + at);
    this.#ticks += this.#stride;
    this.#follow();
    if (turns.some((tick) => tick % TICKS_PER_SWEEP === 0))
      this.#options.owners.keepOnly(new Set(this.#gpus.flatMap(({ pids }) => pids)));
    const ticksPerSample = Math.max(1, Math.round(this.#options.sampleMs / TICK_MS));
    this.#gpus.forEach((gpu, index) => {
      const ticks = this.#works(gpu) ? Math.max(1, Math.ceil(gpu.presentCount / CONTAINERS_PER_TICK)) : TICKS_AT_REST;
      if (turns.some((tick) => tick % ticks === 0)) gpu.tick(this.#nowNs(), ticks * TICK_MS);
      const atRest = gpu.idle && !this.#hasNewSessions(gpu);
      // The GPUs are sampled in different ticks.
      if (turns.some((tick) => isSampleDue(tick + index, ticksPerSample, atRest))) this.#takeSample(gpu);
      else if (
        turns.some((tick) => isCheckDue(tick + index, ticksPerSample)) ||
        (atRest && turns.some((tick) => isSampleDue(tick + index, ticksPerSample, false)))
      )
        void this.#sampleIfChanged(gpu);
    });
    const stride = this.#gpus.some((gpu) => this.#works(gpu)) ? 1 : TICKS_AT_REST;
    if (stride !== this.#stride) this.#setTimer(stride);
  }

  #works(gpu: GpuMonitor): boolean {
    return gpu.busy || this.#hasNewSessions(gpu);
  }

  /** True if a process greeted or left since the GPU's last sample, possibly on this GPU. */
  #hasNewSessions({ uuid }: GpuMonitor): boolean {
    return this.#sampledSessionVersion.get(uuid) !== this.#options.slices.sessionVersion;
  }

  #follow(): void {
    const { slices } = this.#options;
    const uuids = this.#options.gpus();
    const same = uuids.length === this.#gpus.length && uuids.every((uuid, index) => this.#gpus[index]?.uuid === uuid);
    if (same && this.#sliceVersion === slices.version) return;
    if (!same) {
      const known = new Map(this.#gpus.map((gpu) => [gpu.uuid, gpu]));
      this.#gpus = uuids.map(
        (uuid) => known.get(uuid) ?? new GpuMonitor(uuid, this.#options.source, this.#options.owners),
      );
    }
    for (const gpu of this.#gpus) gpu.follow(slices.started.values());
    this.#sliceVersion = slices.version;
  }

  async #sampleIfChanged(gpu: GpuMonitor): Promise<void> {
    const { uuid } = gpu;
    if (this.#sampling.has(uuid) || this.#checking.has(uuid)) return;
    this.#checking.set(uuid, false);
    const changed = await gpu.hasChanged(this.#nowNs);
    const due = this.#checking.get(uuid) === true;
    this.#checking.delete(uuid);
    if (changed || due) this.#takeSample(gpu);
  }

  #takeSample(gpu: GpuMonitor): void {
    const { uuid } = gpu;
    // A driver call that hangs delays further samples of this GPU only.
    if (this.#sampling.has(uuid)) return;
    if (this.#checking.has(uuid)) {
      this.#checking.set(uuid, true);
      return;
    }
    this.#sampling.add(uuid);
    this.#sampledSessionVersion.set(uuid, this.#options.slices.sessionVersion);
    gpu
      .takeSample(this.#nowNs, () => this.#options.clock.now())
      .then(
        () => {
          this.#failing.delete(uuid);
          this.#options.onSample?.(gpu);
        },
        (error: unknown) => {
          if (!this.#failing.has(uuid))
            this.#options.log.warn({ err: error, gpu: uuid }, 'the driver cannot list the processes of a GPU');
          this.#failing.add(uuid);
        },
      )
      .finally(() => this.#sampling.delete(uuid));
  }
}

/** True when a GPU is due for a sample in tick `turn`. */
function isSampleDue(turn: number, ticksPerSample: number, atRest: boolean): boolean {
  const period = Math.floor(turn / ticksPerSample);
  if (atRest && period % PERIODS_AT_REST !== 0) return false;
  return turn % ticksPerSample === Math.floor(ticksPerSample * (SAMPLE_DELAYS[period % SAMPLE_DELAYS.length] ?? 0));
}

/**
 * True when the process list of a GPU is to be compared with its last sample in tick `turn`: half a period after each
 * sample, so that a process that is listed for a second is seen.
 */
function isCheckDue(turn: number, ticksPerSample: number): boolean {
  return ticksPerSample > 1 && isSampleDue(turn - Math.floor(ticksPerSample / 2), ticksPerSample, false);
}
