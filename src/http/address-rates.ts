import type { Clock } from '../host/clock.js';

export interface Rate {
  /** How many may come at once after a pause. */
  readonly burst: number;
  readonly perSecond: number;
}

/** Limit of tracked addresses; beyond it, the address that was seen first is removed. */
const MAX_ADDRESSES = 4_096;

interface Bucket {
  tokens: number;
  refilledAtMs: number;
}

/** One token bucket for each address. */
export class AddressRates {
  readonly #rate: Rate;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: Rate, clock: Pick<Clock, 'now'>) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** Counts an event of an address. False if the address is beyond its rate. */
  take(address: string): boolean {
    const bucket = this.#refilled(address);
    const isWithin = bucket.tokens >= 1;
    if (isWithin) bucket.tokens -= 1;
    return isWithin;
  }

  /** Does not count an event that was counted. */
  giveBack(address: string): void {
    const bucket = this.#refilled(address);
    bucket.tokens = Math.min(this.#rate.burst, bucket.tokens + 1);
  }

  /** Counts this many events of an address. Its debt is limited to one burst. */
  fine(address: string, count: number): void {
    const bucket = this.#refilled(address);
    bucket.tokens = Math.max(-this.#rate.burst, bucket.tokens - count);
  }

  #refilled(address: string): Bucket {
    const { burst, perSecond } = this.#rate;
    const now = this.#clock.now();
    let bucket = this.#buckets.get(address);
    if (bucket === undefined) {
      if (this.#buckets.size >= MAX_ADDRESSES)
        for (const oldest of this.#buckets.keys()) if (this.#buckets.delete(oldest)) break;
      bucket = { tokens: burst, refilledAtMs: now };
      this.#buckets.set(address, bucket);
    }
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.refilledAtMs) * perSecond) / 1_000);
    bucket.refilledAtMs = now;
    return bucket;
  }
}
