import type { Account } from './steering.js';

/** Over a shorter time, a late sample changes the result. */
const MIN_ACCOUNT_NS = 3e9;
/** A container that was throttled for less of the time than this may not have needed its full share. */
const MIN_THROTTLED_PART = 0.8;

/** Sums since the last comparison. */
interface Evidence {
  chargedNs: number;
  launches: number;
  askedNs: number;
  waitedNs: number;
  elapsedNs: number;
  /** Null once a process had no report. */
  reportedNs: number | null;
  reports: number;
  /** The time that the reports cover: samples and ticks begin and end at different moments. */
  reportedForNs: number;
  /** Reported time that no launch explains. */
  unexplainedNs: number;
}

const NO_EVIDENCE: Readonly<Evidence> = {
  chargedNs: 0,
  launches: 0,
  askedNs: 0,
  waitedNs: 0,
  elapsedNs: 0,
  reportedNs: 0,
  reports: 0,
  reportedForNs: 0,
  unexplainedNs: 0,
};

/** The difference between the GPU time that the driver reports and the time that the container was charged. */
export interface TimeDrift {
  /**
   * GPU time that the driver reports minus GPU time that launches were charged, over the last account, in ppm of the
   * GPU; null if the driver reports none.
   */
  readonly timePpm: number | null;
  /** The part of `timePpm` that remains under the largest possible correction; null if the driver reports none. */
  readonly uncorrectableTimePpm: number | null;
}

/** What a container was charged on one GPU in one tick. Times in ns. */
export interface ChargedTime {
  readonly chargedNs: number;
  readonly launches: number;
  /** What it may use in the tick. */
  readonly askedNs: number;
  /** Its launches were throttled. */
  readonly waiting: boolean;
  readonly elapsedNs: number;
  /** Reported time that no launch explains. */
  readonly unexplainedNs: number;
}

/** Accounts of one container on one GPU: its charged time against what the driver reports, over some seconds each. */
export class Accounts {
  #evidence: Evidence = { ...NO_EVIDENCE };
  /** The last one; null if it had too little evidence. */
  #last: Account | null = null;
  #controlErrorPpm: number | null = null;
  #timeDrift: TimeDrift = { timePpm: null, uncorrectableTimePpm: null };

  /** Wanted minus received GPU time, in ppm of the GPU; null if it was throttled less than 80 % of the time lately. */
  get controlErrorPpm(): number | null {
    return this.#controlErrorPpm;
  }

  /** As of the last account. */
  get timeDrift(): TimeDrift {
    return this.#timeDrift;
  }

  /** Forgets all evidence. */
  begin(): void {
    this.#evidence = { ...NO_EVIDENCE };
    this.#last = null;
  }

  charge({ chargedNs, launches, askedNs, waiting, elapsedNs, unexplainedNs }: ChargedTime): void {
    const evidence = this.#evidence;
    evidence.unexplainedNs += unexplainedNs;
    evidence.elapsedNs += elapsedNs;
    evidence.chargedNs += chargedNs;
    evidence.launches += launches;
    evidence.askedNs += waiting ? askedNs : Math.min(chargedNs, askedNs);
    evidence.waitedNs += waiting ? elapsedNs : 0;
  }

  /** The driver's report over the last `elapsedNs`, in percent of the GPU; null if it reports none. */
  report(percent: number | null, elapsedNs: number): void {
    const evidence = this.#evidence;
    evidence.reportedNs =
      percent === null || evidence.reportedNs === null ? null : evidence.reportedNs + (percent / 100) * elapsedNs;
    evidence.reports += 1;
    evidence.reportedForNs += elapsedNs;
  }

  /** The last two accounts; null if there are too few, or the driver reports nothing. Also updates error and drift. */
  close(): readonly [Account, Account] | null {
    const before = this.#last;
    const last = this.#next();
    this.#last = last;
    return before === null || last === null ? null : [before, last];
  }

  #next(): Account | null {
    if (this.#evidence.elapsedNs < MIN_ACCOUNT_NS) return null;
    const { chargedNs, launches, askedNs, waitedNs, elapsedNs, reports, reportedForNs, unexplainedNs } = this.#evidence;
    const reportedNs =
      this.#evidence.reportedNs === null || reportedForNs <= 0
        ? null
        : (this.#evidence.reportedNs * elapsedNs) / reportedForNs;
    const givenNs = reportedNs === null || reportedNs === 0 ? chargedNs : reportedNs;
    this.#controlErrorPpm =
      elapsedNs > 0 && waitedNs >= MIN_THROTTLED_PART * elapsedNs
        ? Math.round(((askedNs - givenNs) / elapsedNs) * 1e6)
        : null;
    this.#timeDrift = {
      timePpm: elapsedNs > 0 && reportedNs !== null ? Math.round(((reportedNs - chargedNs) / elapsedNs) * 1e6) : null,
      uncorrectableTimePpm: reportedNs === null ? null : Math.round((unexplainedNs / reportedForNs) * 1e6),
    };
    this.#evidence = { ...NO_EVIDENCE };
    return reportedNs === null ? null : { chargedNs, reportedNs, elapsedNs, reports, launches };
  }
}
