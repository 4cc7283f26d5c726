import { addIncrease, highest, NO_COUNTERS, wentBack, type UsageCounters } from './usage-counters.js';
import { decodeDeviceUsage, decodePaceUsage, type DeviceUsage, type PaceUsage } from '../../../abi/usage-file.js';
import { DEVICE_USAGE } from '../../../abi/vgpu-abi.js';
import type { UsageReader } from './usage-reader.js';

/**
 * The sum of a container's counters on one GPU over all reads of its usage files. Most reads find unchanged counters
 * and only compare bytes; of the others, only the counters that steering needs are decoded.
 */
export class CounterTotal {
  readonly #index: number;
  #reader: UsageReader | null = null;
  /** The bytes that were read last from this file. */
  readonly #bytes = Buffer.alloc(DEVICE_USAGE.structSize);
  #last: PaceUsage | null = null;
  /** All counters of a read, as long as it is the last: most containers of a node change nothing between two views. */
  #all: { readonly of: PaceUsage; readonly usage: DeviceUsage } | null = null;
  /** The part of the last read that is in the total, and the highest values that were read. */
  #added: PaceUsage | null = null;
  #seen = NO_COUNTERS;
  #total = NO_COUNTERS;
  #wentBack = false;

  /** `index`: position of the GPU in the usage file. */
  constructor(index: number) {
    this.#index = index;
  }

  /** Reads the counters; null if they cannot be read. Another reader is another file. */
  read(reader: UsageReader | null): PaceUsage | null {
    const bytes = reader?.deviceBytes(this.#index) ?? null;
    if (reader !== this.#reader) this.#beginFile(reader);
    if (bytes === null) return null;
    if (this.#last !== null && bytes.equals(this.#bytes)) return this.#last;
    bytes.copy(this.#bytes);
    const now = decodePaceUsage(bytes);
    this.#wentBack ||= this.#last !== null && wentBack(this.#last, now);
    this.#last = now;
    return now;
  }

  /** The same with all counters. */
  readAll(reader: UsageReader | null): DeviceUsage | null {
    const last = this.read(reader);
    return last === null ? null : this.#allOf(last);
  }

  /** As of the last read: the counts since this agent knows the container, plus the file's counts at that time. */
  get total(): UsageCounters {
    if (this.#last !== null && this.#last !== this.#added) {
      const now = this.#allOf(this.#last);
      this.#total = addIncrease(this.#total, this.#seen, now);
      this.#seen = highest(this.#seen, now);
      this.#added = this.#last;
    }
    return this.#total;
  }

  /** One counter of the total, for callers that need only this. */
  totalOf(counter: 'throttledNs' | 'launches'): number {
    const unadded =
      this.#last !== null && this.#last !== this.#added ? Math.max(0, this.#last[counter] - this.#seen[counter]) : 0;
    return Math.min(Number.MAX_SAFE_INTEGER, this.#total[counter] + unadded);
  }

  /** Whether a counter has fallen within one file since the last call. */
  takeWentBack(): boolean {
    const wentBackSince = this.#wentBack;
    this.#wentBack = false;
    return wentBackSince;
  }

  /** `last`: what was read last. */
  #allOf(last: PaceUsage): DeviceUsage {
    if (this.#all?.of !== last) this.#all = { of: last, usage: decodeDeviceUsage(this.#bytes) };
    return this.#all.usage;
  }

  #beginFile(reader: UsageReader | null): void {
    // Fixes the counts of the previous file before the next one begins.
    this.#total = this.total;
    this.#reader = reader;
    this.#last = null;
    this.#added = null;
    this.#seen = NO_COUNTERS;
  }
}
