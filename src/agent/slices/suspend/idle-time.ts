/**
 * For how long a container has been idle, without any cost to its calls. The agent publishes its limits again; the next
 * launch, copy or allocation sees that and writes the time. As long as that time lies before the publication, nothing
 * has happened since. Pure; times are of CLOCK_MONOTONIC in ns.
 */
export interface Quiet {
  /** When limits were published that no launch, copy or allocation has seen yet, as far as the agent knows. */
  readonly sinceNs: bigint;
}

export interface IdleLook {
  readonly nowNs: bigint;
  /** What the container wrote last. */
  readonly workedAtNs: bigint;
  /** Its GPU works for it, although it calls nothing. */
  readonly isBusy: boolean;
}

export interface IdleTime {
  readonly quiet: Quiet;
  /** The limits have to be published again, now. */
  readonly publish: boolean;
  readonly idleMs: number;
}

/** `quiet`: of the last look; null at the first one. */
export function idleTime(quiet: Quiet | null, { nowNs, workedAtNs, isBusy }: IdleLook): IdleTime {
  if (quiet === null || isBusy || workedAtNs >= quiet.sinceNs)
    return { quiet: { sinceNs: nowNs }, publish: true, idleMs: 0 };
  return { quiet, publish: false, idleMs: Number((nowNs - quiet.sinceNs) / 1_000_000n) };
}
