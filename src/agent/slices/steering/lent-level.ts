import { PPM_WHOLE } from '../../../abi/vgpu-abi.js';
import { BORROWED_MOST_NS, effectivePpm, LENT_MOST_NS } from '../../../gpu/share-law.js';

/** What a tick read of a container with a soft limit. Times are CLOCK_MONOTONIC. */
export interface LentTick {
  readonly nowNs: bigint;
  /** Its level at its own share, as its usage file says. */
  readonly lentAtNs: bigint;
  /** GPU time that it was charged since the tick before; negative after a refund. */
  readonly chargedNs: number;
  readonly share: number;
  readonly correctionPpm: number;
}

/** The library rounds, and charges with a correction that may just have changed. */
const SLACK_PART = 0.05;
const SLACK_NS = 1_000_000;
/** Launches that wait for others are in the charged time and not yet in the level. */
const WAITING_NS = 200_000_000n;
/** Ticks without belief after a level that was too low. */
const DOUBTFUL_TICKS = 20;

/**
 * Compares the level that a container publishes with the time that it was charged. The container writes both, but
 * charged time is compared with the driver's reports, and bounds what the container may use. The level may be higher
 * than computed here, and lower by the launches that wait.
 */
export class LentLevel {
  #atNs = 0n;
  #leastNs = 0n;
  #doubtful = 0;

  /** False if the level was lower than the charged time allows, in this tick or shortly before. */
  believes({ nowNs, lentAtNs, chargedNs, share, correctionPpm }: LentTick): boolean {
    const sinceNs = this.#atNs;
    this.#atNs = nowNs;
    this.#doubtful = Math.max(0, this.#doubtful - 1);
    if (sinceNs === 0n) {
      this.#leastNs = lentAtNs;
      return true;
    }
    const wallNs = (chargedNs * Math.min(correctionPpm, PPM_WHOLE)) / effectivePpm(share, 0, 0);
    const surelyNs = BigInt(Math.round(wallNs - SLACK_PART * Math.abs(wallNs) - SLACK_NS));
    this.#leastNs = smaller(larger(this.#leastNs, sinceNs - LENT_MOST_NS) + surelyNs, sinceNs + BORROWED_MOST_NS);
    // A level does not move while its container launches nothing.
    if (this.#leastNs > larger(lentAtNs, nowNs - LENT_MOST_NS) + WAITING_NS) {
      this.#leastNs = lentAtNs;
      this.#doubtful = DOUBTFUL_TICKS;
    }
    return this.#doubtful === 0;
  }
}

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
