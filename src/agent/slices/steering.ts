/**
 * How the agent steers the containers of one GPU: from what each was charged in the last tick follows what each may use
 * in the next. The control library keeps a share by arithmetic alone; what it cannot know is what the others do. That
 * is added here: idle time is lent to containers with a soft limit and taken back when its owner returns, and charges
 * that are wrong for long are corrected. Pure: no clock, no files. Shares in hundredths of a GPU, `ppm` in parts per
 * million of one.
 */
import { PPM_WHOLE } from '../../abi/vgpu-abi.js';
import { CORRECTION_MAX_PPM, CORRECTION_MIN_PPM, effectivePpm } from '../../gpu/share-law.js';

/** One container on this GPU, and what it did in one tick. */
export interface SliceTick {
  readonly id: string;
  readonly share: number;
  /** Null: hard. */
  readonly softLimit: number | null;
  /**
   * GPU time that its launches were charged in the tick, before correction; null in its first tick, when there is
   * nothing to compare with.
   */
  readonly chargedNs: number | null;
  /** Launches waited for tokens, or the next one would have to: it would use more if it might. */
  readonly waiting: boolean;
  /**
   * What the driver reports that its processes use at most, in ppm of the GPU; null where it does not say. Absent:
   * null.
   */
  readonly reportedPpm?: number | null;
}

/** One tick of one GPU. */
export interface GpuTick {
  readonly elapsedNs: number;
  /** Those that may use the GPU, idle or not. Who is missing is forgotten. */
  readonly slices: readonly SliceTick[];
  /** GPU time of foreign processes, which cannot be lent. */
  readonly foreignPpm: number;
}

/** What is remembered of a container from tick to tick. */
export interface SliceState {
  /** What it would use if it might: all of the GPU while it waits. Rises at once and falls slowly. */
  readonly demandPpm: number;
  /** Factor on its charges. */
  readonly correctionPpm: number;
  /**
   * What it used lately: the mean of some ticks, since a launch is charged at once and may take longer than a tick;
   * null: nothing is known.
   */
  readonly meanUsedPpm: number | null;
  /** What it was granted last; null under a hard limit. */
  readonly grantPpm: number | null;
}

export type SteeringState = ReadonlyMap<string, SliceState>;
export const NO_SLICES: SteeringState = new Map();
const NEW_SLICE: SliceState = { demandPpm: 0, correctionPpm: PPM_WHOLE, meanUsedPpm: null, grantPpm: null };

/** What one container is told. */
export interface Decision {
  readonly id: string;
  /** Null under a hard limit: the library knows its share by itself. */
  readonly grantPpm: number | null;
  readonly correctionPpm: number;
  /** Nobody else used the GPU in the tick. */
  readonly alone: boolean;
  /** What everybody else used lately: of a long launch's time that much is not its own. */
  readonly othersPpm: number;
  /** It used the GPU in the tick or shortly before. */
  readonly active: boolean;
  /** What it used in the tick, corrected. */
  readonly usedPpm: number;
}

/** Grants are whole hundredths: smaller changes are not worth a publication. */
const GRANT_STEP_PPM = 10_000;
/** What a container that does not wait is believed to need next: a part more than it used, and a little. */
const HEADROOM = 1.2;
const HEADROOM_PPM = 10_000;
/** How far what is credited to a container may go beyond what it may use, or is reported to. */
const CREDIT_PART = 1.1;
const CREDIT_PPM = 20_000;
/** Old demand fades by this factor a tick; below the least it is none. */
const DEMAND_FADING = 0.6;
const LEAST_DEMAND_PPM = 5_000;
/** Number of ticks over which use is averaged, approximately. */
const MEAN_TICKS = 5;

/** One tick: the new state, and a decision for each slice in their order. */
export function steer(
  state: SteeringState,
  tick: GpuTick,
): { readonly state: SteeringState; readonly decisions: readonly Decision[] } {
  const seen = tick.slices.map((slice) => {
    const before = state.get(slice.id) ?? NEW_SLICE;
    const usedPpm = usedOf(slice, before.correctionPpm, tick.elapsedNs);
    const meanUsedPpm = slice.chargedNs === null ? before.meanUsedPpm : meanOf(before.meanUsedPpm, usedPpm);
    return {
      slice,
      usedPpm,
      meanUsedPpm,
      creditedPpm: creditedOf(slice, meanUsedPpm, before.grantPpm),
      demandPpm: demandOf(slice, usedPpm, before.demandPpm),
      correctionPpm: before.correctionPpm,
    };
  });
  const grants = divide(seen, Math.max(0, PPM_WHOLE - tick.foreignPpm));
  const activeCount = seen.reduce((count, { demandPpm }) => count + (demandPpm > 0 ? 1 : 0), 0);
  const creditedPpm = seen.reduce((sum, slice) => sum + slice.creditedPpm, tick.foreignPpm);
  const decisions = seen.map(({ slice, usedPpm, demandPpm, correctionPpm, ...own }, index) => {
    const active = demandPpm > 0;
    const alone = activeCount - (active ? 1 : 0) === 0 && tick.foreignPpm === 0;
    const othersPpm = Math.min(PPM_WHOLE, creditedPpm - own.creditedPpm);
    return {
      id: slice.id,
      grantPpm: isSoft(slice) ? (grants[index] ?? null) : null,
      correctionPpm,
      alone,
      othersPpm,
      active,
      usedPpm,
    };
  });
  return {
    state: new Map(
      seen.map(({ slice, demandPpm, correctionPpm, meanUsedPpm }, index) => [
        slice.id,
        { demandPpm, correctionPpm, meanUsedPpm, grantPpm: isSoft(slice) ? (grants[index] ?? null) : null },
      ]),
    ),
    decisions,
  };
}

const isSoft = (slice: SliceTick): boolean =>
  slice.softLimit !== null && slice.softLimit > slice.share && slice.share < 100;

const meanOf = (before: number | null, usedPpm: number): number =>
  before === null ? usedPpm : Math.round(before + (usedPpm - before) / MEAN_TICKS);

function usedOf({ chargedNs }: SliceTick, correctionPpm: number, elapsedNs: number): number {
  if (elapsedNs <= 0 || chargedNs === null) return 0;
  // A container cannot use more than the GPU, whatever it writes into its usage file.
  return Math.min(PPM_WHOLE, Math.max(0, Math.round((chargedNs / elapsedNs) * correctionPpm)));
}

/**
 * What a container's use takes off its neighbours' charges. Its counters are its own to write: they count up to what it
 * may use, and to what the driver reports of its processes, a little more for what both are coarse by.
 */
function creditedOf(slice: SliceTick, meanUsedPpm: number | null, grantPpm: number | null): number {
  const allowed = effectivePpm(slice.share, slice.softLimit ?? 0, grantPpm ?? 0);
  const most = Math.min(allowed, slice.reportedPpm ?? PPM_WHOLE);
  return Math.min(meanUsedPpm ?? 0, Math.round(CREDIT_PART * most) + (most > 0 ? CREDIT_PPM : 0));
}

function demandOf(slice: SliceTick, usedPpm: number, beforePpm: number): number {
  if (slice.waiting) return PPM_WHOLE;
  const needed = usedPpm > 0 ? usedPpm * HEADROOM + HEADROOM_PPM : 0;
  const demand = Math.min(PPM_WHOLE, Math.max(needed, beforePpm * DEMAND_FADING));
  return demand < LEAST_DEMAND_PPM ? 0 : Math.round(demand);
}

interface Claim {
  readonly slice: SliceTick;
  readonly demandPpm: number;
}

/**
 * What each may use: its share, and of what the others leave over as much as its demand and soft limit take, in
 * proportion to shares. A container that uses less than its share lends the rest. Grants of those who use the GPU never
 * add up to more than `capacityPpm`, unless their shares alone do.
 */
function divide(claims: readonly Claim[], capacityPpm: number): number[] {
  const parts = claims.map(({ slice, demandPpm }) => {
    const own = effectivePpm(slice.share, 0, 0);
    const most = Math.min(effectivePpm(slice.share, slice.softLimit ?? 0, PPM_WHOLE), Math.max(own, demandPpm));
    return { own, most, grant: own, needs: Math.min(own, demandPpm) };
  });
  let spare = parts.reduce((left, part) => left - part.needs, capacityPpm);
  let taking = parts.filter((part) => part.most > part.grant);
  while (spare > 0 && taking.length > 0) {
    const weight = taking.reduce((sum, part) => sum + part.own, 0);
    const round = spare;
    for (const part of taking) {
      const taken = Math.min(Math.floor((round * part.own) / weight), part.most - part.grant);
      part.grant += taken;
      spare -= taken;
    }
    if (spare === round) break;
    taking = taking.filter((part) => part.grant < part.most);
  }
  return parts.map((part) => Math.max(part.own, part.grant - (part.grant % GRANT_STEP_PPM)));
}

/** What one container was charged, before correction, and what the driver reports that it used, over the same time. */
export interface Account {
  readonly chargedNs: number;
  readonly reportedNs: number;
  readonly elapsedNs: number;
  /** How many reports that is from, and how many launches were charged. */
  readonly reports: number;
  readonly launches: number;
}

/** Less GPU time than this says nothing. */
export const LEAST_EVIDENCE_NS = 500_000_000;
/** A correction moves this part of the way to what the evidence says. */
const CORRECTION_GAIN = 0.25;
/**
 * Drivers report whole percents of a second and are late: the difference that may be no more than that, absolute and
 * relative.
 */
const REPORT_ERROR_PPM = 10_000;
const REPORT_ERROR_PART = 0.05;
/**
 * A report is of one window of this length (nvmlDeviceGetProcessUtilization: 1/6 s to 1 s, by product): of some windows
 * and not of all the time.
 */
const REPORT_WINDOW_NS = 1e9 / 6;

/**
 * The factor on charges after a comparison with real use. The driver's reports are coarse, so only differences beyond
 * their resolution count: without clear evidence charges stay as learned. Moves part of the way, within the bounds of a
 * plausible correction.
 */
export function stepCorrection(correctionPpm: number, account: Account): number {
  const { chargedNs, reportedNs, elapsedNs } = account;
  if (!Object.values(account).every(Number.isFinite)) return correctionPpm;
  if (chargedNs < LEAST_EVIDENCE_NS || reportedNs <= 0 || elapsedNs <= 0) return correctionPpm;
  const tolerated = (REPORT_ERROR_PPM / PPM_WHOLE) * elapsedNs + REPORT_ERROR_PART * chargedNs + scatterNs(account);
  const difference = reportedNs - chargedNs;
  const beyond = Math.sign(difference) * Math.max(0, Math.abs(difference) - tolerated);
  const wanted = PPM_WHOLE * (1 + beyond / chargedNs);
  const next = correctionPpm + (wanted - correctionPpm) * CORRECTION_GAIN;
  return Math.round(Math.min(CORRECTION_MAX_PPM, Math.max(CORRECTION_MIN_PPM, next)));
}

/**
 * How far the mean of an account's reports may be off since few launches fall into a window. A window has one launch
 * more or less than the mean, so a report is off by half a launch's time of a window (one standard deviation) at most,
 * and twice the mean's is allowed for.
 */
function scatterNs({ chargedNs, elapsedNs, reports, launches }: Account): number {
  const launchNs = Math.min(chargedNs / Math.max(1, launches), REPORT_WINDOW_NS);
  return (launchNs / REPORT_WINDOW_NS / Math.sqrt(Math.max(1, reports))) * elapsedNs;
}

/** The state with one container's correction replaced. */
export function withCorrection(state: SteeringState, id: string, correctionPpm: number): SteeringState {
  const before = state.get(id);
  return before === undefined || before.correctionPpm === correctionPpm
    ? state
    : new Map(state).set(id, { ...before, correctionPpm });
}
