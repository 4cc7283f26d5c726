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
  readonly lookMs: number;
  /** CLOCK_MONOTONIC, which the control library compares publications with. */
  readonly monotonicNs?: () => bigint;
}

/** The beat of steering. */
const BEAT_MS = 100;
/** How often what is known of processes that ended is dropped. */
const BEATS_PER_SWEEP = 100;
/** Where there is nothing to steer only every tenth beat looks whether there is. */
const BEATS_AT_REST = 10;
/** Of more containers on a GPU than these each is read a little less often, so that a GPU costs the same however many share it; 32 wait 0.8 s. */
const CROWD_PER_BEAT = 4;
/**
 * How much later than evenly looks come, in turn and in parts of a period: a report is of one short window, and what programs do often has a period, of which
 * reports at even intervals may always show the same part.
 */
const LOOK_DELAYS = [0, 0.3, 0.1, 0.4, 0.2];
/** A GPU that nobody uses is asked about so much less often, as long as nobody comes or goes. */
const PERIODS_AT_REST = 4;

/**
 * Watches and steers all GPUs of the node. One timer, one look at a time for each GPU: what it costs follows the GPUs, and the
 * containers on them only by a few microseconds each.
 */
export class Monitor {
  readonly #options: MonitorOptions;
  readonly #nowNs: () => bigint;
  readonly #looking = new Set<string>();
  readonly #failing = new Set<string>();
  /** By GPU: the company at the last look. */
  readonly #seenCompany = new Map<string, number>();
  #gpus: readonly GpuMonitor[] = [];
  #sliceVersion = -1;
  #beats = 0;
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
    this.#cancel = this.#options.clock.every(BEAT_MS, () => this.#beat());
  }

  /** No look is begun any more; one under way ends by itself. */
  stop(): void {
    this.#cancel();
  }

  #beat(): void {
    const beat = this.#beats++;
    this.#follow();
    if (beat % BEATS_PER_SWEEP === 0) this.#options.owners.keepOnly(new Set(this.#gpus.flatMap(({ pids }) => pids)));
    const beatsPerLook = Math.max(1, Math.round(this.#options.lookMs / BEAT_MS));
    this.#gpus.forEach((gpu, index) => {
      const works = gpu.busy || this.#isStirred(gpu);
      const beats = works ? Math.max(1, Math.ceil(gpu.crowd / CROWD_PER_BEAT)) : BEATS_AT_REST;
      if (beat % beats === 0) gpu.beat(this.#nowNs(), beats * BEAT_MS);
      // One after another, not all at once.
      if (isLookDue(beat + index, beatsPerLook, gpu.idle && !this.#isStirred(gpu))) this.#look(gpu);
    });
  }

  /** Somebody came or went since the last look, maybe here. */
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

  #look(gpu: GpuMonitor): void {
    const { uuid } = gpu;
    // The driver has not answered the last time yet: a card that hangs is asked no more until it does.
    if (this.#looking.has(uuid)) return;
    this.#looking.add(uuid);
    this.#seenCompany.set(uuid, this.#options.slices.company);
    gpu
      .look(this.#nowNs, () => this.#options.clock.now())
      .then(
        () => this.#failing.delete(uuid),
        (error: unknown) => {
          if (!this.#failing.has(uuid))
            this.#options.log.warn({ err: error, gpu: uuid }, 'the driver does not say what runs on a GPU');
          this.#failing.add(uuid);
        },
      )
      .finally(() => this.#looking.delete(uuid));
  }
}

/** Whether a GPU is to be looked at in its beat `turn`. */
function isLookDue(turn: number, beatsPerLook: number, atRest: boolean): boolean {
  const period = Math.floor(turn / beatsPerLook);
  if (atRest && period % PERIODS_AT_REST !== 0) return false;
  return turn % beatsPerLook === Math.floor(beatsPerLook * (LOOK_DELAYS[period % LOOK_DELAYS.length] ?? 0));
}
