import type { LiveLimit, Steering } from '../../abi/limits-file.js';
import { PPM_WHOLE } from '../../abi/vgpu-abi.js';
import { AHEAD_NS, CORRECTION_MAX_PPM, effectivePpm } from '../../gpu/share-law.js';
import type { Account, Decision, SliceTick } from './steering.js';
import type { UsageCounters } from './usage-counters.js';
import type { DeviceUsage } from '../../abi/usage-file.js';
import { CounterTally } from './counter-tally.js';
import type { GpuProcess } from '../../gpu/sample.js';

import type { Slice } from './slice.js';
import type { UsageReader } from './usage-reader.js';

/** Published steering never gets older than this before it is renewed: the library stops believing it at 2,000. */
const OLDEST_MS = 1_200;
/** Driver memory moves by more than this before it is published. */
const OVERHEAD_STEP_BYTES = 1024 * 1024;
/**
 * What others use moves by so much of the GPU, and by such a part of itself, before it is published for that alone: of
 * many others some always come or go.
 */
const OTHERS_STEP_PPM = 10_000;
const OTHERS_STEP_PART = 0.1;
/** Over less than this, being late by a look makes a difference. */
const LEAST_ACCOUNT_NS = 3e9;
/** Reports are of short windows and late: so many of the last count. */
const REPORTS = 3;
/** A container that waited for less of the time than this may just not have wanted its share. */
const MOSTLY = 0.8;

/** What happened between two comparisons. */
interface Evidence {
  chargedNs: number;
  launches: number;
  askedNs: number;
  waitedNs: number;
  elapsedNs: number;
  /** Null once a process had no report. */
  reportedNs: number | null;
  reports: number;
  /** The time that the reports are for: looks and ticks begin and end at other moments. */
  reportedForNs: number;
}

/** How far apart the driver and the container's own account are. */
export interface Drift {
  /**
   * GPU time that the driver reports, less what launches were charged, over the last account, in ppm of the GPU; null
   * where the driver does not say.
   */
  readonly timePpm: number | null;
  /**
   * The part of that which remains if charges are corrected as far as they can be; null where the driver does not say.
   */
  readonly uncorrectableTimePpm: number | null;
  /**
   * Memory that the driver counts, less what the container's processes hold by their own account and what is published
   * as overhead; null where one is not known.
   */
  readonly memoryBytes: number | null;
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
};

/** One container on one GPU: its counters from tick to tick, and what it was told. */
export class GpuSlice {
  readonly slice: Slice;
  /** Position of the GPU in the slice's limits and usage files. */
  readonly index: number;
  /** Its processes on this GPU at the last sample; null before the first. */
  #processes: readonly GpuProcess[] | null = null;
  readonly #tally: CounterTally;
  #reader: UsageReader | null = null;
  /** Percent of the GPU that the driver reported of its processes at the last samples; null where it did not say. */
  #reports: readonly (number | null)[] = [null];
  /** As of the last tick. */
  #counters: DeviceUsage | null = null;
  #readAtNs = 0n;
  #told: Decision | null = null;
  #toldAtNs = 0n;
  #toldOthersPpm = 0;
  #evidence: Evidence = { ...NO_EVIDENCE };
  #controlErrorPpm: number | null = null;
  #driftPpm: number | null = null;
  #uncorrectablePpm: number | null = null;
  /**
   * What the driver counted and what was held when the overhead was last found from both; null while that has to be
   * done anew.
   */
  #compared: { readonly usedBytes: number; readonly heldBytes: number } | null = null;

  constructor(slice: Slice, index: number) {
    this.slice = slice;
    this.index = index;
    this.#tally = new CounterTally(index);
  }

  get gpuUuid(): string {
    return this.slice.spec.devices[this.index]?.uuid ?? '';
  }

  get live(): LiveLimit {
    const live = this.slice.limits.live[this.index];
    if (live === undefined) throw new RangeError(`slice ${this.slice.id} has no GPU ${this.index}`);
    return live;
  }

  /** True when a process of this container may use the GPU: one greeted, or the driver lists one. */
  get present(): boolean {
    return this.slice.sessions.size > 0 || (this.#processes?.length ?? 0) > 0;
  }

  /** True when its launches are paced. */
  get paced(): boolean {
    return this.live.share < 100;
  }

  get processes(): readonly GpuProcess[] {
    return this.#processes ?? [];
  }

  /** Reads its counters as they are now; null while they cannot be read. */
  readCounters(): DeviceUsage | null {
    return this.#tally.read(this.#openReader());
  }

  /**
   * What its counters have grown by, as of the last read; falls neither when the container starts anew nor when it
   * writes smaller numbers.
   */
  get counted(): UsageCounters {
    return this.#tally.total;
  }

  /** Of these, the time that launches waited. */
  get throttledNs(): number {
    return this.#tally.throttledNs;
  }

  /** Since the last call: some counter was lower than before, in the same file. */
  takeWentBack(): boolean {
    return this.#tally.takeWentBack();
  }

  get told(): Decision | null {
    return this.#told;
  }

  /** Asked minus given while it wanted its share, in ppm of the GPU; null when it did not lately. */
  get controlErrorPpm(): number | null {
    return this.#controlErrorPpm;
  }

  /** What holds of the driver's view against its own, as of the last sample and account. */
  get drift(): Drift {
    const [used, held] = [this.#processes === null ? null : this.usedMemoryBytes, this.held()];
    return {
      timePpm: this.#driftPpm,
      uncorrectableTimePpm: this.#uncorrectablePpm,
      memoryBytes: used === null || held === null ? null : used - held - this.live.driverOverheadBytes,
    };
  }

  /**
   * Reads its counters; null where they cannot be read. The first time says whether it waits, and nothing of what it
   * used.
   */
  tick(nowNs: bigint): SliceTick | null {
    const reader = this.#openReader();
    const before = this.#counters;
    const elapsedNs = Number(nowNs - this.#readAtNs);
    const anew = reader !== this.#reader;
    this.#reader = reader;
    this.#counters = this.#tally.read(reader);
    this.#readAtNs = nowNs;
    if (this.#counters === null) return null;
    const { share, softLimit } = this.live;
    const owes = this.#counters.levelAtNs > nowNs + AHEAD_NS;
    if (anew || before === null)
      return { id: this.slice.id, share, softLimit, chargedNs: null, waiting: owes, reportedPpm: this.#reportedPpm };
    const chargedNs = Math.max(0, this.#counters.chargedNs - before.chargedNs);
    const waiting = owes || this.#counters.waits !== before.waits;
    this.#note(chargedNs, Math.max(0, this.#counters.launches - before.launches), waiting, elapsedNs);
    return { id: this.slice.id, share, softLimit, chargedNs, waiting, reportedPpm: this.#reportedPpm };
  }

  /**
   * Publishes a decision where it says something new to somebody who may listen, or where the last one would grow old
   * until the next tick, in `nextMs`.
   */
  tell(decision: Decision, nowNs: bigint, nextMs: number): void {
    const ageMs = Number(nowNs - this.#toldAtNs) / 1e6 + nextMs;
    const before = this.#told;
    const changed =
      before === null ||
      before.grantPpm !== decision.grantPpm ||
      before.alone !== decision.alone ||
      before.correctionPpm !== decision.correctionPpm ||
      Math.abs(this.#toldOthersPpm - decision.othersPpm) >=
        Math.max(OTHERS_STEP_PPM, OTHERS_STEP_PART * this.#toldOthersPpm);
    this.#told = decision;
    // An idle container gets no publications: its values become stale, and it uses its share when it works again.
    const listens = decision.active || before?.active === true;
    if (!listens || (!changed && ageMs <= OLDEST_MS)) return;
    const steering: Steering = {
      atNs: nowNs,
      grantPpm: decision.grantPpm,
      correctionPpm: decision.correctionPpm,
      alone: decision.alone,
      othersPpm: decision.othersPpm,
    };
    this.slice.limits.change(this.index, { steering });
    this.#toldOthersPpm = decision.othersPpm;
    this.#toldAtNs = nowNs;
  }

  /** What its living processes hold by their own account, in bytes; null when that cannot be read. */
  held(): number | null {
    return this.slice.held(this.index);
  }

  /**
   * Takes in what the driver lists of this container, `elapsedNs` after the sample before; `lists` false: it does not
   * list who uses the GPU.
   */
  see(processes: readonly GpuProcess[], elapsedNs: number, lists = true): void {
    const appeared = this.processes.length === 0 && processes.length > 0;
    const percent = sumKnown(processes.map(({ utilizationPercent }) => utilizationPercent));
    this.#reports = [...(appeared ? [null] : this.#reports), lists ? percent : null].slice(-REPORTS);
    this.#processes = processes;
    // Reports are of windows that have ended: of its first moments there are none, while its first launches were
    // charged at once.
    if (appeared) {
      this.#evidence = { ...NO_EVIDENCE };
      return;
    }
    const evidence = this.#evidence;
    const reported = sumKnown(processes.map(({ utilizationPercent }) => utilizationPercent));
    evidence.reportedNs =
      reported === null || evidence.reportedNs === null ? null : evidence.reportedNs + (reported / 100) * elapsedNs;
    evidence.reports += 1;
    evidence.reportedForNs += elapsedNs;
  }

  /** Bytes that its processes use, as the driver counts them; null where it does not. */
  get usedMemoryBytes(): number | null {
    return sumKnown(this.processes.map(({ usedMemoryBytes }) => usedMemoryBytes));
  }

  /**
   * False while neither what the driver counts nor what the container holds has moved since both were compared, as far
   * as the last samples tell.
   */
  get overheadMoves(): boolean {
    return this.#compared === null;
  }

  /** Looks, in passing, whether there is something to compare at the next sample. */
  watchOverhead(): void {
    const { usedMemoryBytes } = this;
    if (
      this.#compared?.usedBytes !== usedMemoryBytes ||
      this.#compared.heldBytes !== this.slice.heldByKnown(this.index)
    )
      this.#compared = null;
  }

  /**
   * Publishes what the driver keeps for itself, given what the container held before and after the driver was asked.
   */
  chargeOverhead(heldBefore: number | null, heldAfter: number | null): void {
    const used = this.usedMemoryBytes;
    if (this.live.memoryBytes === null || used === null || heldBefore === null || heldAfter === null) return;
    if (heldBefore === heldAfter) this.#compared = { usedBytes: used, heldBytes: heldAfter };
    // An allocation in between belongs to one side only: then the next sample will do, or the smaller difference if
    // there was none before.
    if (heldBefore !== heldAfter && this.live.driverOverheadBytes > 0) return;
    const overhead = Math.max(0, used - Math.max(heldBefore, heldAfter));
    const before = this.live.driverOverheadBytes;
    if (overhead === before || (overhead > 0 && before > 0 && Math.abs(overhead - before) < OVERHEAD_STEP_BYTES))
      return;
    this.slice.limits.change(this.index, { driverOverheadBytes: overhead });
  }

  /**
   * What was charged and reported since the last call that had an answer; null while that is too little, or where the
   * driver reports nothing. Takes stock of the control error on the way.
   */
  closeAccount(): Account | null {
    if (this.#evidence.elapsedNs < LEAST_ACCOUNT_NS) return null;
    const { chargedNs, launches, askedNs, waitedNs, elapsedNs, reports, reportedForNs } = this.#evidence;
    const reportedNs =
      this.#evidence.reportedNs === null || reportedForNs <= 0
        ? null
        : (this.#evidence.reportedNs * elapsedNs) / reportedForNs;
    const givenNs = reportedNs === null || reportedNs === 0 ? chargedNs : reportedNs;
    this.#controlErrorPpm =
      elapsedNs > 0 && waitedNs >= MOSTLY * elapsedNs ? Math.round(((askedNs - givenNs) / elapsedNs) * 1e6) : null;
    const mostChargedNs = chargedNs * (CORRECTION_MAX_PPM / PPM_WHOLE);
    this.#uncorrectablePpm =
      elapsedNs > 0 && reportedNs !== null ? Math.round(((reportedNs - mostChargedNs) / elapsedNs) * 1e6) : null;
    this.#driftPpm =
      elapsedNs > 0 && reportedNs !== null ? Math.round(((reportedNs - chargedNs) / elapsedNs) * 1e6) : null;
    this.#evidence = { ...NO_EVIDENCE };
    return reportedNs === null ? null : { chargedNs, reportedNs, elapsedNs, reports, launches };
  }

  /** The most that was reported lately; null unless all of the last samples say. */
  get #reportedPpm(): number | null {
    return this.#reports.reduce((most: number | null, percent) => {
      return most === null || percent === null ? null : Math.max(most, percent * 10_000);
    }, 0);
  }

  #openReader(): UsageReader | null {
    const { usage } = this.slice;
    return usage.ok ? usage.reader : null;
  }

  #note(chargedNs: number, launches: number, waiting: boolean, elapsedNs: number): void {
    const { share, softLimit } = this.live;
    const asked = effectivePpm(share, softLimit ?? 0, this.#told?.grantPpm ?? 0) / 1e6;
    this.#evidence.elapsedNs += elapsedNs;
    this.#evidence.chargedNs += chargedNs;
    this.#evidence.launches += launches;
    this.#evidence.askedNs += waiting ? asked * elapsedNs : Math.min(chargedNs, asked * elapsedNs);
    this.#evidence.waitedNs += waiting ? elapsedNs : 0;
  }
}

/** The sum; null when one is not known. */
function sumKnown(values: readonly (number | null)[]): number | null {
  return values.reduce((sum: number | null, value) => (sum === null || value === null ? null : sum + value), 0);
}
