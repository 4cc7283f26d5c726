import type { SliceSnapshot, UseMoment } from '../node/index.js';

/** What the history keeps of a moment. */
type HistoryMoment = Pick<UseMoment, 'atMs' | 'gpus'> & {
  readonly allocations: readonly {
    readonly id: string;
    readonly slices: readonly (Pick<SliceSnapshot, 'gpuUuid' | 'usedPercent' | 'usedMemoryBytes'> & {
      readonly counters: { readonly throttledSeconds: number } | null;
    })[];
  }[];
};

/** The sampling interval of the history, and the number of samples: five minutes. */
export const HISTORY_PERIOD_MS = 2_000;
const HISTORY_LENGTH = 150;

const MIB = 1024 * 1024;

/**
 * The values of the last minutes, one number per period, the latest last; a series that began later has fewer values.
 */
export interface GpuSeries {
  /** Percent; null if the driver did not report it. */
  readonly used: readonly (number | null)[];
  /** MiB. */
  readonly memory: readonly (number | null)[];
}

export interface SliceSeries {
  readonly gpuUuid: string;
  readonly used: readonly number[];
  readonly memory: readonly number[];
  /** Throttled seconds per second; above 1 if several threads were throttled. */
  readonly throttled: readonly number[];
}

interface Kept {
  readonly gpuUuid: string;
  readonly used: (number | null)[];
  readonly memory: (number | null)[];
  readonly throttled: number[];
  throttledSeconds: number;
}

/** Use of GPUs and containers in the last minutes. */
export class History {
  #gpus = new Map<string, Kept>();
  /** By allocation, then GPU. */
  #slices = new Map<string, Map<string, Kept>>();
  #lastMs: number | null = null;

  /** True when a sample at this time belongs to a new period. */
  isDue(nowMs: number): boolean {
    // Timers can be late; a tolerance of a tenth of a period keeps every sample.
    return this.#lastMs === null || nowMs - this.#lastMs >= HISTORY_PERIOD_MS * 0.9;
  }

  /** Adds a sample; samples within one period are merged. Subjects that left the node are removed. */
  add(moment: HistoryMoment): void {
    if (!this.isDue(moment.atMs)) return;
    const elapsedSeconds = this.#lastMs === null ? 0 : (moment.atMs - this.#lastMs) / 1000;
    this.#lastMs = moment.atMs;
    const gpus = new Map<string, Kept>();
    for (const { uuid, usedPercent, usedMemoryBytes } of moment.gpus) {
      const kept = this.#gpus.get(uuid) ?? fresh(uuid, 0);
      push(kept.used, tenths(usedPercent));
      push(kept.memory, mib(usedMemoryBytes));
      gpus.set(uuid, kept);
    }
    this.#gpus = gpus;
    const slices = new Map<string, Map<string, Kept>>();
    for (const { id, slices: present } of moment.allocations) {
      const byGpu = new Map<string, Kept>();
      for (const slice of present) {
        const throttledSeconds = slice.counters?.throttledSeconds ?? 0;
        const kept = this.#slices.get(id)?.get(slice.gpuUuid) ?? fresh(slice.gpuUuid, throttledSeconds);
        push(kept.used, tenths(slice.usedPercent));
        push(kept.memory, mib(slice.usedMemoryBytes));
        push(
          kept.throttled,
          elapsedSeconds > 0
            ? Math.round((Math.max(0, throttledSeconds - kept.throttledSeconds) / elapsedSeconds) * 1000) / 1000
            : 0,
        );
        kept.throttledSeconds = throttledSeconds;
        byGpu.set(slice.gpuUuid, kept);
      }
      slices.set(id, byGpu);
    }
    this.#slices = slices;
  }

  /** By UUID. */
  gpus(): Record<string, GpuSeries> {
    return Object.fromEntries([...this.#gpus].map(([uuid, { used, memory }]) => [uuid, { used, memory }]));
  }

  /** The series of one allocation, one per GPU; empty for an unknown one. */
  slices(allocation: string): SliceSeries[] {
    return [...(this.#slices.get(allocation)?.values() ?? [])].map(({ gpuUuid, used, memory, throttled }) => ({
      gpuUuid,
      used: used.map((value) => value ?? 0),
      memory: memory.map((value) => value ?? 0),
      throttled,
    }));
  }
}

function fresh(gpuUuid: string, throttledSeconds: number): Kept {
  return { gpuUuid, used: [], memory: [], throttled: [], throttledSeconds };
}

function push<T>(values: T[], value: T): void {
  values.push(value);
  if (values.length > HISTORY_LENGTH) values.shift();
}

function tenths(percent: number | null): number | null {
  return percent === null ? null : Math.round(percent * 10) / 10;
}

function mib(bytes: number | null): number | null {
  return bytes === null ? null : Math.round(bytes / MIB);
}
