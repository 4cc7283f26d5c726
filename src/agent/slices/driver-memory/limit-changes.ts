import type { Clock } from '../../../host/clock.js';

/** How long a change by somebody else is reported. */
const REPORTED_MS = 60_000;
/** So many changes, each within that time of the one before, are a dispute. */
const DISPUTE = 3;

interface Change {
  readonly message: string;
  readonly atMs: number;
  readonly count: number;
}

/** Changes of limits in the driver by somebody else, by slice. */
export class LimitChanges {
  readonly #clock: Clock;
  readonly #changes = new Map<string, Change>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(allocation: string, message: string): void {
    const before = this.#latest(allocation);
    this.#changes.set(allocation, { message, atMs: this.#clock.now(), count: (before?.count ?? 0) + 1 });
  }

  /** The last change, in words; null if there was none lately. */
  of(allocation: string): string | null {
    return this.#latest(allocation)?.message ?? null;
  }

  /** Whether another program changes the limits of a slice again and again. */
  areDisputed(allocation: string): boolean {
    return (this.#latest(allocation)?.count ?? 0) >= DISPUTE;
  }

  /** Whether another program changes the limits of any slice again and again. */
  get hasDispute(): boolean {
    return [...this.#changes.keys()].some((allocation) => this.areDisputed(allocation));
  }

  /** Forgets the slices that are not among these. */
  keepOnly(allocations: ReadonlyMap<string, unknown>): void {
    for (const id of this.#changes.keys()) if (!allocations.has(id)) this.#changes.delete(id);
  }

  #latest(allocation: string): Change | undefined {
    const change = this.#changes.get(allocation);
    return change === undefined || this.#clock.now() - change.atMs > REPORTED_MS ? undefined : change;
  }
}
