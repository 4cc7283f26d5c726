import type { GpuProcess, GpuSample } from '../../gpu/sample.js';
import type { Driver } from './driver.js';

/** The driver calls that are made for each GPU about once a second. They may take long and may reject. */
export type GpuSource = Pick<Driver, 'sample' | 'processes'>;

/** The driver's answers about one GPU at one time. */
export interface GpuReading {
  readonly sample: GpuSample;
  readonly processes: readonly GpuProcess[];
  /** Memory of all its processes, as the driver lists them. */
  readonly processMemoryBytes: number;
}

/** Processes that hold this much more memory than at the last reading have changed. */
const GROWTH_BYTES = 64 * 2 ** 20;

/** Reads one GPU, and compares its processes with the last reading. */
export class GpuSampler {
  readonly #uuid: string;
  readonly #source: GpuSource;
  #last: GpuReading | null = null;

  constructor(uuid: string, source: GpuSource) {
    this.#uuid = uuid;
    this.#source = source;
  }

  /** Null before the first successful reading. */
  get last(): GpuReading | null {
    return this.#last;
  }

  /** Asks the driver; rejects with its error, and the last reading stays. */
  async take(): Promise<GpuReading> {
    // Both at once: the driver answers them with one list of calls.
    const [processes, sample] = await Promise.all([
      this.#source.processes(this.#uuid),
      this.#source.sample(this.#uuid),
    ]);
    this.#last = { sample, processes, processMemoryBytes: memoryOf(processes) };
    return this.#last;
  }

  /** The processes alone, between two readings; null if the driver does not answer. */
  async processes(): Promise<readonly GpuProcess[] | null> {
    try {
      return await this.#source.processes(this.#uuid);
    } catch {
      return null;
    }
  }

  /** Whether these are other processes, or have more memory, than at the last reading. */
  differs(processes: readonly GpuProcess[]): boolean {
    const known = new Set(this.#last?.processes.map(({ pid }) => pid));
    if (processes.length !== known.size || processes.some(({ pid }) => !known.has(pid))) return true;
    return memoryOf(processes) > (this.#last?.processMemoryBytes ?? 0) + GROWTH_BYTES;
  }
}

function memoryOf(processes: readonly GpuProcess[]): number {
  return processes.reduce((sum, { usedMemoryBytes }) => sum + (usedMemoryBytes ?? 0), 0);
}
