/**
 * GPU time of one container that none of its launches explains, sample by sample: a bypass may last for only a second.
 * Pure.
 */
import { PPM_WHOLE } from '../../../abi/vgpu-abi.js';
import { CORRECTION_MAX_PPM } from '../../../gpu/share-law.js';

/** The container's counters over one steering tick. */
export interface ChargedTick {
  readonly chargedNs: number;
  readonly launches: number;
  /** Of these, launches whose charge was an estimate. */
  readonly unknownLaunches: number;
  readonly elapsedNs: number;
}

/** A launch is charged less than this before the window of a report in which it runs; a window has 1/6 s or more. */
const BURST_NS = 300_000_000;
/** Launches of this length still run in samples after the one in which they were charged. */
const LONG_LAUNCH_NS = BURST_NS;
/** The time of a long launch may be this many times its charge. */
const LONG_LAUNCH_FACTOR = 2;
/** An estimate is corrected when the launch has ended, and may be too low for this long. */
const GUESSED_NS = 10e9;
/** Number of seconds that estimates may exempt from this check; one more every minute. */
const MOST_UNJUDGED_NS = 60e9;
/** Less than this part of the GPU may be an error of a report. */
const UNCHARGED_PERCENT = 10;

/** The driver's report of a container's use, in percent of the GPU; null if it has none. */
interface Report {
  readonly percent: number | null;
  /** Time since the last sample. */
  readonly elapsedNs: number;
  /** False for a report between two samples. */
  readonly isSample: boolean;
}

/** While a container rests, ticks are as rare as reports. */
const MOST_REPORTS = 4;

/**
 * A report is the use of one window, charges are sums over ticks. The charges of the busiest moment of the last two
 * samples, under the largest possible correction, bound what launches can explain. A report is judged at the next tick,
 * which has read the charges of its time.
 */
export class UnchargedTime {
  readonly #burst: ChargedTick[] = [];
  #mostNs = 0;
  #mostBeforeNs = 0;
  /** Charged time of long launches that no report has shown yet. */
  #owedNs = 0;
  #guessedNs = 0;
  #unjudgedNs = 0;
  readonly #reports: Report[] = [];
  #found: number | null = null;

  /** Returns the reported time since the last tick, in ns, that no launch explains. */
  tick(tick: ChargedTick): number {
    this.#burst.push(tick);
    while (sum(this.#burst, 'elapsedNs', 1) >= BURST_NS) this.#burst.shift();
    this.#mostNs = Math.max(this.#mostNs, sum(this.#burst, 'chargedNs'));
    // A launch that waits for tokens is counted before it is charged.
    if (tick.chargedNs / Math.max(1, tick.launches) >= LONG_LAUNCH_NS)
      this.#owedNs += LONG_LAUNCH_FACTOR * tick.chargedNs;
    this.#guessedNs = tick.unknownLaunches > 0 ? GUESSED_NS : Math.max(0, this.#guessedNs - tick.elapsedNs);
    this.#unjudgedNs = Math.max(0, this.#unjudgedNs - tick.elapsedNs / 60);
    const mostNs = Math.max(this.#mostNs, this.#mostBeforeNs);
    let unexplainedNs = 0;
    for (const report of this.#reports) unexplainedNs += this.#judge(report, mostNs);
    this.#reports.length = 0;
    return unexplainedNs;
  }

  report(report: Report): void {
    this.#reports.push(report);
    if (this.#reports.length > MOST_REPORTS) this.#reports.shift();
  }

  /** `mostNs`: charges of the busiest moment that may be in the report. */
  #judge({ percent: reported, elapsedNs, isSample }: Report, mostNs: number): number {
    const owedNs = this.#owedNs;
    if (isSample) [this.#mostBeforeNs, this.#mostNs] = [this.#mostNs, sum(this.#burst, 'chargedNs')];
    if (reported === null || elapsedNs <= 0) return 0;
    if (isSample) this.#owedNs = Math.max(0, owedNs - (reported / 100) * elapsedNs);
    const charged = (mostNs / BURST_NS) * (CORRECTION_MAX_PPM / PPM_WHOLE) + owedNs / elapsedNs;
    const percent = Math.max(0, reported - 100 * charged);
    if (this.#guessedNs > 0 && this.#unjudgedNs < MOST_UNJUDGED_NS) {
      this.#unjudgedNs += isSample ? elapsedNs : 0;
      return 0;
    }
    if (percent > UNCHARGED_PERCENT) this.#found = Math.max(percent, this.#found ?? 0);
    return isSample ? (percent / 100) * elapsedNs : 0;
  }

  /** Removes and returns the largest part, in percent of the GPU, of a report that no launch explains. */
  take(): number | null {
    const found = this.#found;
    this.#found = null;
    return found;
  }
}

function sum(ticks: readonly ChargedTick[], name: 'chargedNs' | 'elapsedNs', from = 0): number {
  let total = 0;
  for (let at = from; at < ticks.length; at += 1) total += ticks[at]?.[name] ?? 0;
  return total;
}
