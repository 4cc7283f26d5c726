/**
 * How the agent steers the containers of one GPU: the charges of the last tick determine the grants of the next. The
 * control library alone enforces a share, but it does not see the other containers. The agent adds this: it lends idle
 * time to containers with a soft limit, takes it back when the owner works again, and corrects charges that are wrong
 * for long. Pure: no clock, no files. Shares are in cores, `ppm` in parts per million of a GPU.
 */
import { PPM_WHOLE } from '../../../abi/vgpu-abi.js';
import type { Priority } from '../../../gpu/priority.js';
import { CORRECTION_MAX_PPM, CORRECTION_MIN_PPM, effectivePpm } from '../../../gpu/share-law.js';

/** One container on this GPU in one tick. */
export interface SliceTick {
  readonly id: string;
  readonly share: number;
  /** Null: a hard share. */
  readonly softLimit: number | null;
  /** Absent: normal. */
  readonly priority?: Priority;
  /**
   * GPU time that its launches were charged in the tick, before correction; null in its first tick, which has no
   * previous value.
   */
  readonly chargedNs: number | null;
  /** Launches were throttled, or the next one would be: the container would use more GPU time. */
  readonly waiting: boolean;
  /** Upper bound of its use that the driver reports, in ppm of the GPU; null or absent if it reports none. */
  readonly reportedPpm?: number | null;
  /** Number of its processes on this GPU; absent: one. */
  readonly processes?: number;
  /** While it is beyond its share, it gives way at each launch to containers that claim. */
  readonly givesWay?: boolean;
  /** It claims what it lent to others, because it has used no more than its share. */
  readonly claims?: boolean;
}

/** One tick of one GPU. */
export interface GpuTick {
  readonly elapsedNs: number;
  /** Containers that may use the GPU, idle or not. A container that is missing here loses its state. */
  readonly slices: readonly SliceTick[];
  /** GPU time of foreign processes, which cannot be lent. */
  readonly foreignPpm: number;
  /** Number of processes that use it; absent: one, if there is any use. */
  readonly foreignProcesses?: number;
}

/** State of a container between ticks. */
export interface SliceState {
  /**
   * GPU time that it would use without a limit: the whole GPU while it is throttled. Rises at once and falls slowly.
   */
  readonly demandPpm: number;
  /** The part of this demand that must be left to it by those that give way to its claims. */
  readonly reservedPpm: number;
  /** Factor on its charges. */
  readonly correctionPpm: number;
  /**
   * Its recent use: the mean of some ticks, since a launch is charged at once and may last longer than a tick; null:
   * unknown.
   */
  readonly meanUsedPpm: number | null;
  /** Its last grant; null under a hard share. */
  readonly grantPpm: number | null;
}

export type SteeringState = ReadonlyMap<string, SliceState>;
export const NO_SLICES: SteeringState = new Map();
const NEW_SLICE: SliceState = {
  demandPpm: 0,
  reservedPpm: 0,
  correctionPpm: PPM_WHOLE,
  meanUsedPpm: null,
  grantPpm: null,
};

/** The decision for one container. */
export interface Decision {
  readonly id: string;
  /** Null under a hard share: the control library knows the share itself. */
  readonly grantPpm: number | null;
  readonly correctionPpm: number;
  /** No other container used the GPU in the tick. */
  readonly alone: boolean;
  /** Recent use by all others, as far as they can use it beside a launch: their part of a long launch's time. */
  readonly othersPpm: number;
  /** It used the GPU in the tick or shortly before. */
  readonly active: boolean;
  /** Its use in the tick, corrected. */
  readonly usedPpm: number;
}

/** Grants are whole cores: smaller changes are not published. */
const GRANT_STEP_PPM = 10_000;
/** A container that is not throttled is expected to need its last use times this factor, plus a small amount. */
const HEADROOM = 1.2;
const HEADROOM_PPM = 10_000;
/** The use that a container is credited with may exceed its grant or its driver report by this factor. */
const CREDIT_PART = 1.1;
const CREDIT_PPM = 20_000;
/** Old demand shrinks by this factor per tick; demand below the minimum is none. */
const DEMAND_FADING = 0.6;
const MIN_DEMAND_PPM = 5_000;
/** Number of ticks over which use is averaged, approximately. */
const MEAN_TICKS = 5;

/** Computes one tick: the new state, and a decision for each slice in their order. */
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
      reservedPpm: demandOf(slice, slice.claims === true ? 0 : usedPpm, before.reservedPpm),
      correctionPpm: before.correctionPpm,
    };
  });
  // Only grants of soft slices are published.
  const grants = tick.slices.some(isSoft) ? divideByView(seen, Math.max(0, PPM_WHOLE - tick.foreignPpm)) : [];
  const activeCount = seen.reduce((count, { demandPpm }) => count + (demandPpm > 0 ? 1 : 0), 0);
  const creditedPpm = seen.reduce((sum, slice) => sum + slice.creditedPpm, tick.foreignPpm);
  const processesOf = ({ slice, demandPpm }: (typeof seen)[number]): number =>
    demandPpm > 0 ? Math.max(1, slice.processes ?? 1) : 0;
  const foreignProcesses = tick.foreignPpm > 0 ? Math.max(1, tick.foreignProcesses ?? 1) : 0;
  const processes = seen.reduce((sum, one) => sum + processesOf(one), foreignProcesses);
  const after = new Map<string, SliceState>();
  const decisions = seen.map((one, index) => {
    const { slice, usedPpm, demandPpm, reservedPpm, correctionPpm, meanUsedPpm } = one;
    const { id } = slice;
    const grantPpm = isSoft(slice) ? (grants[index] ?? null) : null;
    const active = demandPpm > 0;
    const alone = activeCount - (active ? 1 : 0) === 0 && tick.foreignPpm === 0;
    const othersPpm = Math.min(creditedPpm - one.creditedPpm, mostBesidePpm(processes - processesOf(one)));
    after.set(id, { demandPpm, reservedPpm, correctionPpm, meanUsedPpm, grantPpm });
    return { id, grantPpm, correctionPpm, alone, othersPpm, active, usedPpm };
  });
  return { state: after, decisions };
}

/**
 * The part of the GPU that so many processes have at most while another one works: the GPU gives time slices of the
 * same length to all that have work. They may use more of it over a longer time, in which the other one pauses.
 */
const mostBesidePpm = (processes: number): number => Math.floor((PPM_WHOLE * processes) / (processes + 1));

const isSoft = (slice: SliceTick): boolean =>
  slice.softLimit !== null && slice.softLimit > slice.share && slice.share < 100;

const meanOf = (before: number | null, usedPpm: number): number =>
  before === null ? usedPpm : Math.round(before + (usedPpm - before) / MEAN_TICKS);

function usedOf({ chargedNs }: SliceTick, correctionPpm: number, elapsedNs: number): number {
  if (elapsedNs <= 0 || chargedNs === null) return 0;
  // A container cannot use more than the GPU, whatever its usage file says.
  return Math.min(PPM_WHOLE, Math.max(0, Math.round((chargedNs / elapsedNs) * correctionPpm)));
}

/**
 * The use that is subtracted from the charges of a container's neighbours. The container can write its own counters, so
 * they count only up to its grant and up to the driver's report, plus a tolerance because both are coarse.
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
  return demand < MIN_DEMAND_PPM ? 0 : Math.round(demand);
}

/** The part of their demand that low slices always keep beside high ones. */
const LOW_NEED_PPM = 50_000;

/** How a slice sees the demand of the others: by its priority, or as one that has borrowed from them. */
type View = Priority | 'borrower';

const viewOf = (slice: SliceTick): View =>
  slice.givesWay === true && slice.claims !== true ? 'borrower' : (slice.priority ?? 'normal');

/** The demand of a container as slices of this view see it. */
function demandFor(view: View, { slice, demandPpm, reservedPpm }: SliceDemand): number {
  if (view === 'high' && slice.priority === 'low') return Math.min(demandPpm, LOW_NEED_PPM);
  if (view === 'low' && slice.priority === 'high') return 0;
  if (view === 'borrower' && slice.claims === true) return reservedPpm;
  return demandPpm;
}

/**
 * Like `divide`, where some wait for others at each launch, so that no time is reserved for those: high slices leave
 * low ones only their floor, and low ones may use all that the high ones leave. Slices that have borrowed may use all
 * that others do not claim.
 */
function divideByView(demands: readonly SliceDemand[], capacityPpm: number): number[] {
  const views = demands.map(({ slice }) => viewOf(slice));
  const grants = new Map(
    [...new Set(views)].map((view) => [
      view,
      divide(
        demands.map((one) => ({ ...one, demandPpm: demandFor(view, one) })),
        capacityPpm,
      ),
    ]),
  );
  return views.map((view, at) => grants.get(view)?.[at] ?? 0);
}

interface SliceDemand {
  readonly slice: SliceTick;
  readonly demandPpm: number;
  readonly reservedPpm: number;
}

/**
 * The GPU time of each container: its share, plus part of the unused time as far as its demand and soft limit allow, in
 * proportion to shares. A container that uses less than its share lends the rest. Grants of containers that use the GPU
 * never exceed `capacityPpm` in sum, unless their shares alone do.
 */
function divide(demands: readonly SliceDemand[], capacityPpm: number): number[] {
  const parts = demands.map(({ slice, demandPpm }) => {
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

/** The charges of one container, before correction, and the use that the driver reports, over the same time. */
export interface Account {
  readonly chargedNs: number;
  readonly reportedNs: number;
  readonly elapsedNs: number;
  /** Number of reports behind `reportedNs`, and of charged launches. */
  readonly reports: number;
  readonly launches: number;
}

/** Less GPU time than this, charged and reported, is no evidence. */
export const MIN_EVIDENCE_NS = 500_000_000;
/** A correction moves this part of the way to the measured ratio. */
const CORRECTION_GAIN = 0.5;
/**
 * Drivers report whole percents of a second, and late: this alone may cause differences within these bounds, absolute
 * and relative.
 */
const REPORT_ERROR_PPM = 10_000;
const REPORT_ERROR_PART = 0.05;
/**
 * A report covers one window of this length (nvmlDeviceGetProcessUtilization: 1/6 s to 1 s, by product), so reports
 * cover some windows and not the whole time.
 */
const REPORT_WINDOW_NS = 1e9 / 6;

/**
 * The factor on charges after a comparison with real use. The driver's reports are coarse, so only differences beyond
 * their resolution count; without clear evidence the factor stays. It moves part of the way, within plausible bounds.
 */
export function stepCorrection(correctionPpm: number, account: Account): number {
  const { chargedNs, reportedNs, elapsedNs } = account;
  if (!Object.values(account).every(Number.isFinite)) return correctionPpm;
  if (Math.max(chargedNs, reportedNs) < MIN_EVIDENCE_NS) return correctionPpm;
  if (chargedNs <= 0 || reportedNs <= 0 || elapsedNs <= 0) return correctionPpm;
  const tolerated = (REPORT_ERROR_PPM / PPM_WHOLE) * elapsedNs + REPORT_ERROR_PART * chargedNs + scatterNs(account);
  const difference = reportedNs - chargedNs;
  const beyond = Math.sign(difference) * Math.max(0, Math.abs(difference) - tolerated);
  const ratio = PPM_WHOLE * (1 + beyond / chargedNs);
  const wanted = Math.min(CORRECTION_MAX_PPM, Math.max(CORRECTION_MIN_PPM, ratio));
  return Math.round(correctionPpm + (wanted - correctionPpm) * CORRECTION_GAIN);
}

/**
 * The factor after two accounts in a row. It moves only as far as both show: one of them alone may tell of the moments
 * in which the library did not know a neighbour or the costs of launches yet.
 */
export function agreedCorrection(correctionPpm: number, before: Account, last: Account): number {
  const [a, b] = [before, last].map((account) => stepCorrection(correctionPpm, account) - correctionPpm);
  if (a === undefined || b === undefined || a * b <= 0) return correctionPpm;
  return correctionPpm + (Math.abs(a) < Math.abs(b) ? a : b);
}

/**
 * The possible error of the mean of an account's reports when few launches fall into a window. A window has at most one
 * launch more or less than the mean, so the standard deviation of a report is at most half a launch's time per window;
 * the mean is allowed twice its own deviation.
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
