/** How the engine's time relates to the API server's time. */
export type ClockState =
  | { readonly is: 'inSync' }
  /** The API server's time is more than one step ahead and no other clock confirms it; the engine ignores it. */
  | { readonly is: 'leapRefused'; readonly byMs: number }
  /** The engine's time is ahead; it runs at half speed until the API server's time has caught up. */
  | { readonly is: 'ahead'; readonly byMs: number };

export interface EngineClockOptions {
  /** The API server's time, milliseconds since 1970; null while unknown. */
  readonly serverTime: () => number | null;
  /** This machine's time, which must confirm a leap. */
  readonly localTime: () => number;
  /**
   * The latest time that any replica wrote to the ledger, 0 without; a time that other replicas used counts as
   * confirmed.
   */
  readonly ledgerTime?: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed?: () => number;
  /** Called when the state changes. */
  readonly changed: (state: ClockState) => void;
}

/** Largest step by which the engine's time follows the API server's time without confirmation. */
const MAX_STEP_MS = 60_000;
/** Largest difference at which two clocks confirm each other. */
const AGREEMENT_MS = 60_000;
/** Largest leap after a pause of the service; an administrator must confirm a larger one. */
const MAX_LEAP_MS = 31 * 86_400_000;

/**
 * The engine's time follows the API server's time, so that all replicas agree even if their nodes' clocks differ. It
 * never goes back, and one wrong clock cannot move it far: a step of more than a minute needs the agreement of this
 * machine's clock, and a step of more than 31 days is always refused.
 */
export class EngineClock {
  readonly #options: EngineClockOptions;
  readonly #elapsed: () => number;
  #time: number | null = null;
  #at: number;
  #state: ClockState = { is: 'inSync' };
  #differenceMs = 0;
  #wasInSync = false;

  constructor(options: EngineClockOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
    this.#at = this.#elapsed();
  }

  /** Continues from the latest time in the ledger; 0 for an empty ledger. */
  continueFrom(ledgerTime: number): void {
    this.#time = ledgerTime > 0 ? ledgerTime : null;
    this.#wasInSync = false;
    this.#at = this.#elapsed();
    this.now();
  }

  /** The API server's time minus the engine's, milliseconds. */
  get differenceMs(): number {
    return this.#differenceMs;
  }

  get state(): ClockState {
    return this.#state;
  }

  /**
   * The reason why this replica's time may differ from other replicas' time; null otherwise. The reason remains until
   * something confirms the API server's time.
   */
  get notReady(): string | null {
    if (this.#wasInSync || this.#state.is !== 'leapRefused') return null;
    return `the API server's time is ${Math.round(this.#state.byMs / 1000)} s ahead of the ledger's, and neither the clock of this replica nor another replica confirms it`;
  }

  /** Milliseconds since 1970. */
  now(): number {
    const { serverTime, localTime } = this.#options;
    const elapsed = this.#elapsed();
    const passed = Math.max(0, elapsed - this.#at);
    this.#at = elapsed;
    const server = serverTime() ?? (this.#time === null ? localTime() : null);
    const own = this.#time === null ? server : this.#confirmedByLedger(this.#time + passed, server);
    if (own === null) return Math.floor(localTime());
    this.#time = server === null ? own : this.#follow(own, server, passed);
    this.#differenceMs = server === null ? 0 : server - this.#time;
    this.#updateState();
    return Math.floor(this.#time);
  }

  /** The time that other replicas wrote, unless it is ahead of the API server's time. */
  #confirmedByLedger(own: number, server: number | null): number {
    const written = this.#options.ledgerTime?.() ?? 0;
    return server !== null && written > own && written <= server + MAX_STEP_MS ? written : own;
  }

  #follow(own: number, server: number, passed: number): number {
    const step = server - own;
    if (step < 0) return own - Math.min(passed / 2, -step);
    return step <= MAX_STEP_MS || this.#isConfirmed(server, step) ? server : own;
  }

  #isConfirmed(server: number, step: number): boolean {
    return step <= MAX_LEAP_MS && Math.abs(this.#options.localTime() - server) <= AGREEMENT_MS;
  }

  #updateState(): void {
    const byMs = Math.abs(this.#differenceMs);
    const is = byMs <= MAX_STEP_MS ? 'inSync' : this.#differenceMs > 0 ? 'leapRefused' : 'ahead';
    if (is !== 'leapRefused') this.#wasInSync = true;
    if (is === this.#state.is) return;
    this.#state = is === 'inSync' ? { is } : { is, byMs };
    this.#options.changed(this.#state);
  }
}

/** The event for a clock that is not in sync. */
export function clockWarning({ is, byMs }: Exclude<ClockState, { readonly is: 'inSync' }>): {
  readonly reason: string;
  readonly message: string;
} {
  const by = `${Math.round(byMs / 1000)} s`;
  return is === 'leapRefused'
    ? {
        reason: 'ClockLeapRefused',
        message: `the API server's time is ${by} ahead of the quota's, and either the clock of this replica does not confirm it or the difference exceeds 31 days: the API server's time is ignored. Check the clocks; if the API server's is right, set the quota's time: gpu-manager quota clock --set`,
      }
    : {
        reason: 'ClockAhead',
        message: `the quota's time is ${by} ahead of the API server's, and runs at half speed until both are equal. Check the clock of the API server; if it is right and the difference is large, set the quota's time: gpu-manager quota clock --set`,
      };
}
