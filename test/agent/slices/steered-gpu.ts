import { PPM_WHOLE } from '../../../src/abi/vgpu-abi.js';
import { effectivePpm } from '../../../src/gpu/share-law.js';
import { charge, waitNs, wallNs } from '../../gpu/token-bucket.js';
import {
  NO_SLICES,
  steer,
  stepCorrection,
  withCorrection,
  type SteeringState,
} from '../../../src/agent/slices/steering/steering.js';

/** A container on a GPU that exists in the model only. */
export interface ModelSlice {
  readonly share: number;
  readonly softLimit?: number;
  /** GPU time of one launch. */
  readonly kernelUs: number;
  /** The cost of one launch that the library assumes, where that is wrong. */
  readonly believedUs?: number;
  /** Demand as a part of the time from `fromMs` on: 1 launches whenever it may. */
  readonly wants?: (ms: number) => number;
}

const STEP_US = 100;
const TICK_MS = 100;
const EVIDENCE_MS = 5_000;

interface Running {
  readonly slice: ModelSlice;
  level: bigint;
  /** GPU time submitted and not completed, and GPU time wanted and not submitted, both in us. */
  queueUs: number;
  demandUs: number;
  grant: number | null;
  correction: number;
  charged: number;
  waited: boolean;
  usedUs: number;
  evidenceUs: number;
  evidenceCharged: number;
  evidenceLaunches: number;
}

/**
 * Runs containers under the law of the library and the steering of the agent; returns the part of the GPU that each
 * used from `fromMs` to `toMs`. The GPU divides its time equally among those with queued work, as real ones do.
 */
export function runModel(slices: readonly ModelSlice[], fromMs: number, toMs: number, reports = true): number[] {
  const all = slices.map((slice): Running => ({
    slice,
    level: 0n,
    queueUs: 0,
    demandUs: 0,
    grant: null,
    correction: PPM_WHOLE,
    charged: 0,
    waited: false,
    usedUs: 0,
    evidenceUs: 0,
    evidenceCharged: 0,
    evidenceLaunches: 0,
  }));
  let state: SteeringState = NO_SLICES;
  for (let us = 0; us < toMs * 1_000; us += STEP_US) {
    const ms = us / 1_000;
    for (const one of all) submit(one, BigInt(us) * 1_000n + 10n ** 9n, one.slice.wants?.(ms) ?? 1);
    serve(all, ms >= fromMs);
    if (us % (TICK_MS * 1_000) === 0) state = tick(all, state);
    if (reports && us > 0 && us % (EVIDENCE_MS * 1_000) === 0) state = learn(all, state);
  }
  return all.map((one) => one.usedUs / ((toMs - fromMs) * 1_000));
}

function submit(one: Running, now: bigint, wanted: number): void {
  const { slice } = one;
  one.demandUs = wanted >= 1 ? Infinity : Math.min(one.demandUs, 50 * slice.kernelUs) + wanted * STEP_US;
  const effective = effectivePpm(slice.share, slice.softLimit ?? 0, one.grant ?? 0);
  // A program that keeps few launches in flight: the queue holds the work of two steps, or one launch.
  while (one.demandUs >= slice.kernelUs && one.queueUs <= Math.max(2 * STEP_US, slice.kernelUs)) {
    if (waitNs(one.level, now) > 0n) {
      one.waited = true;
      return;
    }
    const believed = slice.believedUs ?? slice.kernelUs;
    one.level = charge(one.level, now, wallNs(BigInt(believed) * 1_000n, effective, one.correction), 0n);
    one.charged += believed * 1_000;
    one.evidenceCharged += believed * 1_000;
    one.evidenceLaunches += 1;
    one.queueUs += slice.kernelUs;
    one.demandUs -= slice.kernelUs;
  }
}

function serve(all: readonly Running[], counts: boolean): void {
  let left = STEP_US;
  for (
    let busy = all.filter((one) => one.queueUs > 0);
    busy.length > 0 && left > 1e-6;
    busy = busy.filter((one) => one.queueUs > 1e-6)
  ) {
    const part = left / busy.length;
    for (const one of busy) {
      const used = Math.min(part, one.queueUs);
      one.queueUs -= used;
      one.evidenceUs += used;
      left -= used;
      if (counts) one.usedUs += used;
    }
  }
}

function tick(all: readonly Running[], before: SteeringState): SteeringState {
  const slices = all.map(({ slice, charged, waited }, index) => ({
    id: String(index),
    share: slice.share,
    softLimit: slice.softLimit ?? null,
    chargedNs: charged,
    waiting: waited,
  }));
  const { state, decisions } = steer(before, { elapsedNs: TICK_MS * 1e6, slices, foreignPpm: 0 });
  decisions.forEach(({ grantPpm, correctionPpm }, index) => {
    const one = all[index];
    if (one === undefined) return;
    one.grant = grantPpm;
    one.correction = correctionPpm;
    one.charged = 0;
    one.waited = false;
  });
  return state;
}

/** The report of the driver: whole percents of the time, rounded down. */
function learn(all: readonly Running[], before: SteeringState): SteeringState {
  let state = before;
  all.forEach((one, index) => {
    const percent = Math.floor((100 * one.evidenceUs) / (EVIDENCE_MS * 1_000));
    const account = {
      chargedNs: one.evidenceCharged,
      reportedNs: percent * EVIDENCE_MS * 10_000,
      elapsedNs: EVIDENCE_MS * 1e6,
      reports: EVIDENCE_MS / 1_000,
      launches: one.evidenceLaunches,
    };
    state = withCorrection(
      state,
      String(index),
      stepCorrection(before.get(String(index))?.correctionPpm ?? PPM_WHOLE, account),
    );
    one.evidenceUs = 0;
    one.evidenceCharged = 0;
    one.evidenceLaunches = 0;
  });
  return state;
}
