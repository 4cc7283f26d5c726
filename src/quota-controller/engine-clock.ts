/** How the engine's time stands to the API server's. */
export type ClockState =
  | { readonly is: 'inStep' }
  /** The API server's time is further ahead than one step, and nothing confirms it: the engine's time goes on alone. */
  | { readonly is: 'leapRefused'; readonly byMs: number }
  /** The engine's time is ahead: it goes at half speed until the API server's time has come. */
  | { readonly is: 'ahead'; readonly byMs: number };

export interface EngineClockOptions {
  /** Of the API server, milliseconds since 1970; null while it is not known. */
  readonly serverTime: () => number | null;
  /** Of this machine: the second witness of a leap. */
  readonly localTime: () => number;
  /** The latest time that any replica wrote to the ledger, 0 without: what others took is confirmed. */
  readonly ledgerTime?: () => number;
  /** Milliseconds that only go forward. */
  readonly elapsed?: () => number;
  /** Told when the state becomes another one. */
  readonly changed: (state: ClockState) => void;
}

/** The engine's time follows the API server's by steps of at most so much. */
export const LARGEST_STEP_MS = 60_000;
/** What two clocks may differ by and still confirm each other. */
const AGREE_MS = 60_000;
/** A service may have been away for a while; a larger leap is confirmed by people alone. */
export const LARGEST_LEAP_MS = 31 * 86_400_000;

/**
 * The time of the engine: that of the API server, so that all replicas agree whatever the clocks of their nodes say. It
 * never goes back, and no single clock can make it leap: a step of more than a minute is taken only where the clock of
 * this machine agrees with the API server's, and never one of more than 31 days.
 */
export class EngineClock {
  readonly #options: EngineClockOptions;
  readonly #elapsed: () => number;
  #time: number | null = null;
  #at: number;
  #state: ClockState = { is: 'inStep' };
  #differenceMs = 0;
  #wasInStep = false;

  constructor(options: EngineClockOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
    this.#at = this.#elapsed();
  }

  /** Goes on from the latest time that the ledger has, 0 of an empty one. */
  continueFrom(ledgerTime: number): void {
    this.#time = ledgerTime > 0 ? ledgerTime : null;
    this.#wasInStep = false;
    this.#at = this.#elapsed();
    this.now();
  }

  /** The API server's time less the engine's, milliseconds. */
  get differenceMs(): number {
    return this.#differenceMs;
  }

  get state(): ClockState {
    return this.#state;
  }

  /**
   * Why this replica's time may be another one than that of other replicas, or null: since it started, nothing has
   * confirmed the API server's.
   */
  get notReady(): string | null {
    if (this.#wasInStep || this.#state.is !== 'leapRefused') return null;
    return `the API server's time is ${Math.round(this.#state.byMs / 1000)} s ahead of the ledger's, and neither the clock of this replica nor another replica confirms it`;
  }

  /** Milliseconds since 1970. */
  now(): number {
    const { serverTime, localTime } = this.#options;
    const elapsed = this.#elapsed();
    const passed = Math.max(0, elapsed - this.#at);
    this.#at = elapsed;
    const server = serverTime() ?? (this.#time === null ? localTime() : null);
    const own = this.#time === null ? server : this.#known(this.#time + passed, server);
    if (own === null) return Math.floor(localTime());
    this.#time = server === null ? own : this.#follow(own, server, passed);
    this.#differenceMs = server === null ? 0 : server - this.#time;
    this.#tell();
    return Math.floor(this.#time);
  }

  /** What other replicas wrote, as long as it is not beyond the API server's time. */
  #known(own: number, server: number | null): number {
    const written = this.#options.ledgerTime?.() ?? 0;
    return server !== null && written > own && written <= server + LARGEST_STEP_MS ? written : own;
  }

  #follow(own: number, server: number, passed: number): number {
    const step = server - own;
    if (step < 0) return own - Math.min(passed / 2, -step);
    return step <= LARGEST_STEP_MS || this.#isConfirmed(server, step) ? server : own;
  }

  #isConfirmed(server: number, step: number): boolean {
    return step <= LARGEST_LEAP_MS && Math.abs(this.#options.localTime() - server) <= AGREE_MS;
  }

  #tell(): void {
    const byMs = Math.abs(this.#differenceMs);
    const is = byMs <= LARGEST_STEP_MS ? 'inStep' : this.#differenceMs > 0 ? 'leapRefused' : 'ahead';
    if (is !== 'leapRefused') this.#wasInStep = true;
    if (is === this.#state.is) return;
    this.#state = is === 'inStep' ? { is } : { is, byMs };
    this.#options.changed(this.#state);
  }
}

/** What people are told of a clock that is not in step. */
export function clockWarning({ is, byMs }: Exclude<ClockState, { readonly is: 'inStep' }>): {
  readonly reason: string;
  readonly message: string;
} {
  const by = `${Math.round(byMs / 1000)} s`;
  return is === 'leapRefused'
    ? {
        reason: 'ClockLeapRefused',
        message: `the API server's time is ${by} ahead of the quota's, and the clock of this replica does not confirm it, or it is more than 31 days: the quota's time goes on without it. Check the clocks; if the API server's is right, set the quota's: gpu-manager quota clock --set`,
      }
    : {
        reason: 'ClockAhead',
        message: `the quota's time is ${by} ahead of the API server's, and goes at half speed until they meet. Check the clock of the API server; if it is right and the difference is large, set the quota's: gpu-manager quota clock --set`,
      };
}
