import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { GpuMonitor } from './gpu-monitor.js';
import type { GpuSource } from './ports.js';
import type { ProcessOwners } from './process-owners.js';
import type { Slices } from './slices.js';

export interface MonitorOptions {
  readonly slices: Slices;
  readonly owners: ProcessOwners;
  readonly source: GpuSource;
  /** UUIDs of the GPUs of this node; asked for again when they may have changed. */
  readonly gpus: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** How often the driver is asked about each GPU: `--sample-period`. */
  readonly sampleMs: number;
  /** CLOCK_MONOTONIC, which the control library compares publications with. */
  readonly monotonicNs?: () => bigint;
}

/** The tick of steering. */
const TICK_MS = 100;
/** How often what is known of processes that ended is dropped. */
const TICKS_PER_SWEEP = 100;
/** Without work to steer, only every tenth tick checks for some. */
const TICKS_AT_REST = 10;
/**
 * Of more containers on a GPU than these each is read a little less often, so that a GPU costs the same however many
 * share it; 32 wait 0.8 s.
 */
const CROWD_PER_TICK = 4;
/**
 * How much later than evenly looks come, in turn and in parts of a period: a report is of one short window, and what
 * programs do often has a period, of which reports at even intervals may always show the same part.
 */
const SAMPLE_DELAYS = [0, 0.3, 0.1, 0.4, 0.2];
/** An idle GPU is sampled this many times less often, until a process appears or ends. */
const PERIODS_AT_REST = 4;

/**
 * Samples and steers all GPUs of the node. One timer; one sample at a time per GPU. The cost depends on the number of
 * GPUs, and only by a few microseconds on the containers.
 */
export class Monitor {
  readonly #options: MonitorOptions;
  readonly #nowNs: () => bigint;
  readonly #looking = new Set<string>();
  readonly #failing = new Set<string>();
  /** By GPU: the company at the last sample. */
  readonly #seenCompany = new Map<string, number>();
  #gpus: readonly GpuMonitor[] = [];
  #sliceVersion = -1;
  #ticks = 0;
  #cancel: () => void = () => undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    this.#nowNs = options.monotonicNs ?? (() => process.hrtime.bigint());
  }

  /** In the driver's order. */
  get gpus(): readonly GpuMonitor[] {
    return this.#gpus;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(TICK_MS, () => this.#tick());
  }

  /** Starts no more samples; a running sample ends by itself. */
  stop(): void {
    this.#cancel();
  }

  /** Samples the GPUs of a slice now: processes of its container are known to have ended. */
  sampleNow(allocation: string): void {
    for (const gpu of this.#gpus) if (gpu.gpuSlices.some(({ slice }) => slice.id === allocation)) this.#takeSample(gpu);
  }

  #tick(): void {
    const tick = this.#ticks++;
    this.#follow();
    if (tick % TICKS_PER_SWEEP === 0) this.#options.owners.keepOnly(new Set(this.#gpus.flatMap(({ pids }) => pids)));
    const ticksPerSample = Math.max(1, Math.round(this.#options.sampleMs / TICK_MS));
    this.#gpus.forEach((gpu, index) => {
      const works = gpu.busy || this.#isStirred(gpu);
      const ticks = works ? Math.max(1, Math.ceil(gpu.crowd / CROWD_PER_TICK)) : TICKS_AT_REST;
      if (tick % ticks === 0) gpu.tick(this.#nowNs(), ticks * TICK_MS);
      // One after another, not all at once.
      if (isSampleDue(tick + index, ticksPerSample, gpu.idle && !this.#isStirred(gpu))) this.#takeSample(gpu);
    });
  }

  /** Somebody came or went since the last sample, maybe here. */
  #isStirred({ uuid }: GpuMonitor): boolean {
    return this.#seenCompany.get(uuid) !== this.#options.slices.company;
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

  #takeSample(gpu: GpuMonitor): void {
    const { uuid } = gpu;
    // The previous call has not returned yet: a GPU that hangs is not sampled until it does.
    if (this.#looking.has(uuid)) return;
    this.#looking.add(uuid);
    this.#seenCompany.set(uuid, this.#options.slices.company);
    gpu
      .takeSample(this.#nowNs, () => this.#options.clock.now())
      .then(
        () => this.#failing.delete(uuid),
        (error: unknown) => {
          if (!this.#failing.has(uuid))
            this.#options.log.warn({ err: error, gpu: uuid }, 'the driver does not list the processes of a GPU');
          this.#failing.add(uuid);
        },
      )
      .finally(() => this.#looking.delete(uuid));
  }
}

/** Whether a GPU is due for a sample in tick `turn`. */
function isSampleDue(turn: number, ticksPerSample: number, atRest: boolean): boolean {
  const period = Math.floor(turn / ticksPerSample);
  if (atRest && period % PERIODS_AT_REST !== 0) return false;
  return turn % ticksPerSample === Math.floor(ticksPerSample * (SAMPLE_DELAYS[period % SAMPLE_DELAYS.length] ?? 0));
}
