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
/** Launches of this length run on in later samples than the one in which they were charged. */
const LONG_LAUNCH_NS = BURST_NS;
/** The time of a long launch may be this many times its charge. */
const LONG_LAUNCH_FACTOR = 2;
/** An estimate is corrected when the launch has ended, and may be too low for this long. */
const GUESSED_NS = 10e9;
/** Number of seconds that estimates may exempt from this check; one more every minute. */
const MOST_UNJUDGED_NS = 60e9;
/** Less than this part of the GPU may be an error of a report. */
const UNCHARGED_PERCENT = 10;

/**
 * A report is the use of one window, charges are sums over ticks. The charges of the busiest moment of the last two
 * samples, under the largest possible correction, bound what launches can explain.
 */
export class UnchargedTime {
  #burst: ChargedTick[] = [];
  #mostNs = 0;
  #mostBeforeNs = 0;
  /** Charged time of long launches that no report has shown yet. */
  #owedNs = 0;
  #guessedNs = 0;
  #unjudgedNs = 0;
  #found: number | null = null;
  #ticked = false;

  tick(tick: ChargedTick): void {
    this.#ticked = true;
    this.#burst.push(tick);
    while (sum(this.#burst.slice(1), 'elapsedNs') >= BURST_NS) this.#burst.shift();
    this.#mostNs = Math.max(this.#mostNs, sum(this.#burst, 'chargedNs'));
    if (tick.launches > 0 && tick.chargedNs / tick.launches >= LONG_LAUNCH_NS)
      this.#owedNs += LONG_LAUNCH_FACTOR * tick.chargedNs;
    this.#guessedNs = tick.unknownLaunches > 0 ? GUESSED_NS : Math.max(0, this.#guessedNs - tick.elapsedNs);
    this.#unjudgedNs = Math.max(0, this.#unjudgedNs - tick.elapsedNs / 60);
  }

  /**
   * A report of the last `elapsedNs`, in percent of the GPU; null if the driver has none. Returns how much of it no
   * launch explains; null if that is unknown.
   */
  sample(reportedPercent: number | null, elapsedNs: number): number | null {
    const [mostNs, owedNs] = [Math.max(this.#mostNs, this.#mostBeforeNs), this.#owedNs];
    [this.#mostBeforeNs, this.#mostNs] = [this.#mostNs, sum(this.#burst, 'chargedNs')];
    const ticked = this.#ticked;
    this.#ticked = false;
    if (reportedPercent === null || elapsedNs <= 0 || !ticked) return null;
    this.#owedNs = Math.max(0, owedNs - (reportedPercent / 100) * elapsedNs);
    const charged = (mostNs / BURST_NS) * (CORRECTION_MAX_PPM / PPM_WHOLE) + owedNs / elapsedNs;
    const percent = Math.max(0, reportedPercent - 100 * charged);
    if (this.#guessedNs > 0 && this.#unjudgedNs < MOST_UNJUDGED_NS) {
      this.#unjudgedNs += elapsedNs;
      return percent;
    }
    if (percent > UNCHARGED_PERCENT) this.#found = Math.max(percent, this.#found ?? 0);
    return percent;
  }

  /** Removes and returns the largest part, in percent of the GPU, of a sample that no launch explains. */
  take(): number | null {
    const found = this.#found;
    this.#found = null;
    return found;
  }
}

function sum(ticks: readonly ChargedTick[], name: 'chargedNs' | 'elapsedNs'): number {
  return ticks.reduce((total, tick) => total + tick[name], 0);
}
