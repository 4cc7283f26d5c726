import { addIncrease, highest, NO_COUNTERS, wentBack, type UsageCounters } from '../core/usage-counters.js';
import type { DeviceUsage } from '../core/usage-file.js';
import type { UsageReader } from './usage-reader.js';

/** What one container did on one GPU, added up over all reads of its usage files. */
export class CounterTally {
  readonly #index: number;
  #reader: UsageReader | null = null;
  #last: DeviceUsage | null = null;
  /** The highest that this file ever said. */
  #seen = NO_COUNTERS;
  #total = NO_COUNTERS;
  #wentBack = false;

  /** `index`: position of the GPU in the usage file. */
  constructor(index: number) {
    this.#index = index;
  }

  /** Reads the counters and adds what they grew by; null where they cannot be read. Another reader is another file. */
  read(reader: UsageReader | null): DeviceUsage | null {
    if (reader !== this.#reader) {
      this.#reader = reader;
      this.#last = null;
      this.#seen = NO_COUNTERS;
    }
    const now = reader?.device(this.#index) ?? null;
    if (now !== null) {
      this.#total = addIncrease(this.#total, this.#seen, now);
      this.#seen = highest(this.#seen, now);
      this.#wentBack ||= this.#last !== null && wentBack(this.#last, now);
      this.#last = now;
    }
    return now;
  }

  /** Since the agent met the container, and before that since the container started. */
  get total(): UsageCounters {
    return this.#total;
  }

  /** Since the last call: some counter was lower than before, in the same file. */
  takeWentBack(): boolean {
    const wentBackSince = this.#wentBack;
    this.#wentBack = false;
    return wentBackSince;
  }
}
