/**
 * GPU time that one container used beyond its share, whatever its usage file says of its tokens. The agent keeps the
 * bucket of the share law itself, from what launches were charged: a container whose bucket is empty launches nothing.
 * Charges are corrected by what the driver reports, so a container that understates them is seen as well. Pure.
 */
import { PPM_WHOLE } from '../../../abi/vgpu-abi.js';
import { AHEAD_NS, LENT_MOST_NS, TURN_NS } from '../../../gpu/share-law.js';

/** One steering tick of a container on one GPU. */
export interface LawTick {
  /** GPU time that it was charged since the tick before, in ns; negative after a refund. */
  readonly chargedNs: number;
  readonly launches: number;
  readonly elapsedNs: number;
  /** Its share at the end of the tick, in cores. */
  readonly share: number;
  /** The part of the GPU that it might use in the tick. */
  readonly allowedPpm: number;
  /** Factor on its charges in the tick. */
  readonly correctionPpm: number;
}

/** Parts of the GPU's time over some seconds, in ppm. */
export interface ShareAccount {
  readonly usedPpm: number;
  readonly allowedPpm: number;
  /** What it was charged for launches that its bucket did not allow. */
  readonly overPpm: number;
}

const ACCOUNT_NS = 10e9;
/** Counters are read somewhat later than the time of the tick. */
const LATE_NS = 100e6;
/** Debt in spite of which a container may launch: its credit is not known, so the longest one counts. */
const DEBT_NS = LATE_NS + Number(LENT_MOST_NS + AHEAD_NS);
/**
 * A launch is counted when it begins to wait for tokens, and charged when it has them: in so many ticks of one debt the
 * threads of a container begin to wait, and what is charged in these is for earlier launches.
 */
const WAITING_TICKS = 8;
/** How far beyond `DEBT_NS` launches that were not allowed raise the debt, so that it ends soon after the last one. */
const OVER_DEBT_NS = 1e9;

export class OverShare {
  /** For how long its bucket is empty, as of the last tick, in ns. */
  #debtNs = 0;
  /** Ticks with launches since the debt became too long to launch. */
  #ticksInDebt = 0;
  #share = 0;
  #sums = { usedNs: 0, allowedNs: 0, overNs: 0, elapsedNs: 0 };
  #account: ShareAccount | null = null;

  /** Of the last ten seconds that are complete; null before. */
  get account(): ShareAccount | null {
    return this.#account;
  }

  tick({ chargedNs, launches, elapsedNs, share, allowedPpm, correctionPpm }: LawTick): void {
    // A debt is paid sooner at a larger share.
    if (share > this.#share) this.#debtNs *= this.#share / share;
    this.#share = share;
    const usedNs = (chargedNs * correctionPpm) / PPM_WHOLE;
    const allowed = allowedPpm / PPM_WHOLE;
    // A turn is used as a whole.
    const mostNs = DEBT_NS + (TURN_NS / allowed) * (correctionPpm / PPM_WHOLE);
    const leftNs = this.#debtNs - elapsedNs;
    const isInDebt = leftNs > mostNs;
    if (!isInDebt) this.#ticksInDebt = 0;
    else if (launches > 0) this.#ticksInDebt += 1;
    const isOver = isInDebt && launches > 0 && this.#ticksInDebt > WAITING_TICKS;
    const afterNs = leftNs + usedNs / allowed;
    this.#debtNs = isOver ? Math.max(leftNs, Math.min(afterNs, mostNs + OVER_DEBT_NS)) : Math.max(0, afterNs);
    const sums = this.#sums;
    sums.usedNs += usedNs;
    sums.allowedNs += allowed * elapsedNs;
    sums.overNs += isOver ? Math.max(0, usedNs - allowed * elapsedNs) : 0;
    sums.elapsedNs += elapsedNs;
    if (sums.elapsedNs < ACCOUNT_NS) return;
    const ppm = (ns: number): number => Math.round((ns / sums.elapsedNs) * PPM_WHOLE);
    this.#account = { usedPpm: ppm(sums.usedNs), allowedPpm: ppm(sums.allowedNs), overPpm: ppm(sums.overNs) };
    this.#sums = { usedNs: 0, allowedNs: 0, overNs: 0, elapsedNs: 0 };
  }
}
