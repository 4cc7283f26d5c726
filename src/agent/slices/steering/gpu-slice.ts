import type { LiveLimit, Steering } from '../../../abi/limits-file.js';
import { PPM_WHOLE, STEERING_STALE_NS } from '../../../abi/vgpu-abi.js';
import { AHEAD_NS, BORROWED_LEAST_NS, effectivePpm } from '../../../gpu/share-law.js';
import { Accounts, type TimeDrift } from './accounts.js';
import { LentLevel } from './lent-level.js';
import { OverShare, type ShareAccount } from './over-share.js';
import type { Account, Decision, SliceTick } from './steering.js';
import { UnchargedTime } from './uncharged-time.js';
import type { UsageCounters } from '../usage/usage-counters.js';
import type { DeviceUsage, PaceUsage } from '../../../abi/usage-file.js';
import { CounterTotal } from '../usage/counter-total.js';
import type { GpuProcess } from '../../../gpu/sample.js';

import type { Slice } from '../slice.js';
import type { UsageReader } from '../usage/usage-reader.js';

/**
 * Published steering is renewed before it is older than this: the control library ignores it after 2,000 ms, and a tick
 * may be late. Two ticks of a GPU with 32 containers are shorter.
 */
const MAX_AGE_MS = 1_700;
/** A smaller change of the driver's memory is not published. */
const OVERHEAD_STEP_BYTES = 1024 * 1024;
/**
 * The use of other containers is published when it changes by this much of the GPU and by this part of itself: among
 * many containers some always start or stop.
 */
const OTHERS_STEP_PPM = 10_000;
const OTHERS_STEP_PART = 0.1;
/** Reports cover short windows and arrive late, so this many recent ones are used. */
const REPORTS = 3;
/** Launches before the first tick count with this much GPU time at most. */
const MOST_CHARGED_BEFORE_NS = 60e9;
/** The difference between the driver's figures and the container's own account. */
export interface Drift extends TimeDrift {
  /**
   * Memory that the driver counts minus memory that the container's processes account for and the published overhead;
   * null if one of them is unknown.
   */
  readonly memoryBytes: number | null;
}

/** One container on one GPU: its counters from tick to tick, and the data published to it. */
export class GpuSlice {
  readonly slice: Slice;
  /** Position of the GPU in the slice's limits and usage files. */
  readonly index: number;
  /** Its processes on this GPU at the last sample; null before the first. */
  #processes: readonly GpuProcess[] | null = null;
  readonly #counterTotal: CounterTotal;
  #reader: UsageReader | null = null;
  #usedMemoryBytes: number | null = 0;
  /** Percent of the GPU that the driver reported for its processes in the last samples; null if it reported none. */
  readonly #reports: (number | null)[] = [null];
  /** The state at the last steering tick. */
  #counters: PaceUsage | null = null;
  #readAtNs = 0n;
  #published: Decision | null = null;
  /** What the container can read; null before the first publication. */
  #told: Steering | null = null;
  readonly #accounts = new Accounts();
  #lentLevel = new LentLevel();
  readonly #uncharged = new UnchargedTime();
  #overShare = new OverShare();
  /** Its limits at the last tick. */
  #limitsBefore: Pick<LiveLimit, 'share' | 'softLimit'> | null = null;
  /**
   * The driver's count and the held memory from which the overhead was computed last; null if it must be computed
   * again.
   */
  #compared: { readonly usedBytes: number; readonly heldBytes: number } | null = null;

  constructor(slice: Slice, index: number) {
    this.slice = slice;
    this.index = index;
    this.#counterTotal = new CounterTotal(index);
  }

  get gpuUuid(): string {
    return this.slice.spec.devices[this.index]?.uuid ?? '';
  }

  get live(): LiveLimit {
    const live = this.slice.limits.live[this.index];
    if (live === undefined) throw new RangeError(`slice ${this.slice.id} has no GPU ${this.index}`);
    return live;
  }

  /** True when a process of this container may use the GPU: it sent a greeting, or the driver lists it. */
  get present(): boolean {
    return this.slice.sessions.size > 0 || (this.#processes?.length ?? 0) > 0;
  }

  /** True when its launches are limited. */
  get paced(): boolean {
    return this.live.share < 100;
  }

  get processes(): readonly GpuProcess[] {
    return this.#processes ?? [];
  }

  /** Reads its counters; null if they cannot be read. */
  readCounters(): DeviceUsage | null {
    return this.#counterTotal.readAll(this.#openReader());
  }

  /**
   * The increase of its counters up to the last read; does not fall when the container restarts or writes smaller
   * numbers.
   */
  get counted(): UsageCounters {
    return this.#counterTotal.total;
  }

  /** The throttled part of these counters, in ns. */
  get throttledNs(): number {
    return this.#counterTotal.totalOf('throttledNs');
  }

  /** The launches among these counters. */
  get launches(): number {
    return this.#counterTotal.totalOf('launches');
  }

  /**
   * The largest part of the GPU, in percent, that a sample since the last call showed and that no launch explains; null
   * if there was none.
   */
  takeUnchargedPercent(): number | null {
    return this.#uncharged.take();
  }

  /** Whether a counter has fallen within one file since the last call. */
  takeWentBack(): boolean {
    return this.#counterTotal.takeWentBack();
  }

  get decision(): Decision | null {
    return this.#published;
  }

  /** Wanted minus received GPU time, in ppm of the GPU; null if it was throttled less than 80 % of the time lately. */
  get controlErrorPpm(): number | null {
    return this.#accounts.controlErrorPpm;
  }

  /** The differences as of the last sample and account. */
  get drift(): Drift {
    const { timeDrift, uncountedMemoryBytes: uncounted } = this;
    return { ...timeDrift, memoryBytes: uncounted === null ? null : uncounted - this.live.driverOverheadBytes };
  }

  get timeDrift(): TimeDrift {
    return this.#accounts.timeDrift;
  }

  /** Its use of the GPU in the last ten seconds beside what it might use; null before. */
  get shareAccount(): ShareAccount | null {
    return this.#overShare.account;
  }

  /** Memory that the driver counts and its processes do not, in bytes; null if one of the two is unknown. */
  get uncountedMemoryBytes(): number | null {
    const used = this.#processes === null ? null : this.usedMemoryBytes;
    const held = used === null ? null : this.held();
    return used === null || held === null ? null : used - held;
  }

  /** Reads its counters; null if they cannot be read. The first tick says only whether it is throttled. */
  tick(nowNs: bigint): SliceTick | null {
    const reader = this.#openReader();
    const before = reader === this.#reader ? this.#counters : null;
    const elapsedNs = Number(nowNs - this.#readAtNs);
    const now = this.#counterTotal.read(reader);
    this.#reader = reader;
    this.#counters = now;
    this.#readAtNs = nowNs;
    if (now === null) return null;
    const owes = now.levelAtNs > nowNs + AHEAD_NS;
    const waiting = owes || (before !== null && now.waits !== before.waits);
    if (before === null) this.#noteFirst(now);
    else this.#noteLaw(before, now, nowNs, elapsedNs);
    const chargedNs = before === null ? null : this.#note(before, now, waiting, elapsedNs);
    const { share, softLimit, priority = 'normal' } = this.live;
    this.#limitsBefore = { share, softLimit };
    const givesWay =
      this.live.givesWay !== undefined &&
      priority !== 'low' &&
      now.lentAtNs > 0n &&
      (priority === 'high' || this.#isLevelBelieved(before, now, nowNs));
    return {
      id: this.slice.id,
      share,
      softLimit,
      priority,
      reportedPpm: this.#reportedPpm,
      processes: this.processes.length,
      givesWay,
      claims: priority === 'high' || (givesWay && now.lentAtNs <= nowNs + BORROWED_LEAST_NS),
      chargedNs,
      waiting,
    };
  }

  /**
   * Publishes a decision if it is new and the container may read it, or if the published one would become too old
   * before the next tick, in `nextMs`.
   */
  publish(decision: Decision, nowNs: bigint, nextMs: number): void {
    const ageMs = Number(nowNs - (this.#told?.atNs ?? 0n)) / 1e6 + nextMs;
    const toldOthersPpm = this.#told?.othersPpm ?? 0;
    const before = this.#published;
    const changed =
      before === null ||
      before.grantPpm !== decision.grantPpm ||
      before.alone !== decision.alone ||
      before.correctionPpm !== decision.correctionPpm ||
      Math.abs(toldOthersPpm - decision.othersPpm) >= Math.max(OTHERS_STEP_PPM, OTHERS_STEP_PART * toldOthersPpm);
    this.#published = decision;
    // An idle container gets no publications: its values become stale, and it uses its share when it works again.
    const listens = decision.active || before?.active === true;
    if (!listens || (!changed && ageMs <= MAX_AGE_MS)) return;
    this.#told = {
      atNs: nowNs,
      grantPpm: decision.grantPpm,
      correctionPpm: decision.correctionPpm,
      alone: decision.alone,
      othersPpm: decision.othersPpm,
    };
    this.slice.limits.steer(this.index, this.#told);
  }

  /** Bytes that its living processes hold by their own account; null if that cannot be read. */
  held(): number | null {
    return this.slice.held(this.index);
  }

  /**
   * Updates the processes from a driver sample that is `elapsedNs` after the previous one; `lists` is false if the
   * driver does not list the users of the GPU.
   */
  update(processes: readonly GpuProcess[], elapsedNs: number, lists = true): void {
    const appeared = this.processes.length === 0 && processes.length > 0;
    const percent = sumKnown(processes.map(({ utilizationPercent }) => utilizationPercent));
    if (appeared) this.#reports.fill(null);
    this.#reports.push(lists ? percent : null);
    if (this.#reports.length > REPORTS) this.#reports.shift();
    this.#processes = processes;
    this.#usedMemoryBytes = sumKnown(processes.map(({ usedMemoryBytes }) => usedMemoryBytes));
    this.#uncharged.report({ percent, elapsedNs, isSample: true });
    // Reports cover windows that have ended: the first moments of a process have no report, while its first launches
    // were charged at once.
    if (appeared) this.#accounts.begin();
    else this.#accounts.report(percent, elapsedNs);
  }

  /** Its processes between two samples, `elapsedNs` after the last one. */
  updateBetween(processes: readonly GpuProcess[], elapsedNs: number): void {
    const percent = sumKnown(processes.map(({ utilizationPercent }) => utilizationPercent));
    this.#uncharged.report({ percent, elapsedNs, isSample: false });
  }

  /** Percent of the GPU that the driver reports for its processes in the last sample; null if it does not. */
  get reportedPercent(): number | null {
    return sumKnown(this.processes.map(({ utilizationPercent }) => utilizationPercent));
  }

  /** Bytes that its processes use, as the driver counts them; null if it does not. */
  get usedMemoryBytes(): number | null {
    return this.#usedMemoryBytes;
  }

  /**
   * False while neither the driver's count nor the held memory has changed since the overhead was computed, as far as
   * the last samples tell.
   */
  get overheadMoves(): boolean {
    return this.#compared === null;
  }

  /** Checks whether the overhead must be computed again at the next sample. */
  watchOverhead(): void {
    if (
      this.#compared?.usedBytes !== this.usedMemoryBytes ||
      this.#compared.heldBytes !== this.slice.heldByKnown(this.index)
    )
      this.#compared = null;
  }

  /**
   * Publishes the driver's own memory, computed from the memory that the container held before and after the driver
   * call.
   */
  chargeOverhead(heldBefore: number | null, heldAfter: number | null): void {
    const used = this.usedMemoryBytes;
    // An unenforced slice has no usage data of its own: the driver's part of its memory is unknown.
    if (this.slice.unenforced) return;
    if (this.live.memoryBytes === null || used === null || heldBefore === null || heldAfter === null) return;
    if (heldBefore === heldAfter) this.#compared = { usedBytes: used, heldBytes: heldAfter };
    // An allocation during the call is in only one of the two counts: wait for the next sample, or use the smaller
    // difference if nothing was published before.
    if (heldBefore !== heldAfter && this.live.driverOverheadBytes > 0) return;
    const overhead = Math.max(0, used - Math.max(heldBefore, heldAfter));
    const before = this.live.driverOverheadBytes;
    if (overhead === before || (overhead > 0 && before > 0 && Math.abs(overhead - before) < OVERHEAD_STEP_BYTES))
      return;
    this.slice.limits.change(this.index, { driverOverheadBytes: overhead });
  }

  /**
   * The charges and reports of the last two accounts; null if there are too few, or the driver reports nothing. Also
   * updates control error and drift.
   */
  closeAccount(): readonly [Account, Account] | null {
    return this.#accounts.close();
  }

  /** The highest recent report; null unless all recent samples have one. */
  get #reportedPpm(): number | null {
    let most = 0;
    for (const percent of this.#reports) {
      if (percent === null) return null;
      most = Math.max(most, percent * 10_000);
    }
    return most;
  }

  #openReader(): UsageReader | null {
    const { usage } = this.slice;
    return usage.ok ? usage.reader : null;
  }

  #isLevelBelieved(before: PaceUsage | null, { chargedNs, lentAtNs }: PaceUsage, nowNs: bigint): boolean {
    if (before === null) this.#lentLevel = new LentLevel();
    return this.#lentLevel.believes({
      nowNs,
      lentAtNs,
      chargedNs: chargedNs - (before?.chargedNs ?? chargedNs),
      share: this.live.share,
      correctionPpm: this.#published?.correctionPpm ?? PPM_WHOLE,
    });
  }

  #noteFirst({ chargedNs, launches, unknownLaunches }: PaceUsage): void {
    // Earlier launches may still run.
    const mostNs = Math.min(chargedNs, MOST_CHARGED_BEFORE_NS);
    this.#uncharged.tick({ chargedNs: mostNs, launches, unknownLaunches, elapsedNs: 0 });
    this.#overShare = new OverShare();
  }

  /** Without a recent grant the library decides itself what it uses, up to the soft limit. */
  #noteLaw(before: PaceUsage, now: PaceUsage, nowNs: bigint, elapsedNs: number): void {
    const told = this.#told !== null && Number(nowNs - this.#told.atNs) < STEERING_STALE_NS ? this.#told : null;
    const allowed = ({ share, softLimit }: Pick<LiveLimit, 'share' | 'softLimit'>): number =>
      effectivePpm(share, softLimit ?? 0, told?.grantPpm ?? PPM_WHOLE);
    this.#overShare.tick({
      chargedNs: now.chargedNs - before.chargedNs,
      launches: now.launches - before.launches,
      elapsedNs,
      share: this.live.share,
      // A limit that changed holds for some of the time.
      allowedPpm: Math.max(allowed(this.live), allowed(this.#limitsBefore ?? this.live)),
      correctionPpm: told?.correctionPpm ?? PPM_WHOLE,
    });
  }

  /** Returns the GPU time that was charged since the tick before, in ns. */
  #note(before: PaceUsage, now: PaceUsage, waiting: boolean, elapsedNs: number): number {
    const chargedNs = Math.max(0, now.chargedNs - before.chargedNs);
    const launches = Math.max(0, now.launches - before.launches);
    const unknownLaunches = Math.max(0, now.unknownLaunches - before.unknownLaunches);
    const unexplainedNs = this.#uncharged.tick({ chargedNs, launches, unknownLaunches, elapsedNs });
    const { share, softLimit } = this.live;
    const asked = effectivePpm(share, softLimit ?? 0, this.#published?.grantPpm ?? 0) / 1e6;
    this.#accounts.charge({ chargedNs, launches, askedNs: asked * elapsedNs, waiting, elapsedNs, unexplainedNs });
    return chargedNs;
  }
}

/** The sum; null if one value is unknown. */
function sumKnown(values: readonly (number | null)[]): number | null {
  let sum = 0;
  for (const value of values) {
    if (value === null) return null;
    sum += value;
  }
  return sum;
}
