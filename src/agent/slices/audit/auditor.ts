import {
  audit,
  FINDING_CODES,
  type AuditedDevice,
  type AuditedProcess,
  type AuditedSession,
  type AuditView,
  type Finding,
  type FindingCode,
} from './audit.js';
import { advance, NO_FINDINGS, reportedFindings, type AuditPolicy, type FindingState } from './findings.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { namespacePids, processStat } from '../../../host/process-stat.js';
import { gpuSlicesOf } from '../observation.js';
import type { GpuMonitor } from '../steering/gpu-monitor.js';
import type { Evictor, SliceNotices } from '../ports.js';
import type { MappedLibraries } from './mapped-libraries.js';
import type { ProcessOwners } from '../process-owners.js';
import { SampledUse } from './sampled-use.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { GpuSlice } from '../steering/gpu-slice.js';

export interface AuditorOptions {
  readonly slices: Slices;
  /** Whether the usage files are on file systems of a fixed size, so that no container can enlarge them. */
  readonly usageBounded: boolean;
  /**
   * Free bytes of the file system that containers could fill: with activity files, where usage files are bounded, else
   * with both. Absent or null: unknown.
   */
  readonly freeBytes?: () => number | null;
  /** Finds the processes that have the control library mapped; absent: unknown. */
  readonly libraries?: MappedLibraries;
  /** Settings that keep the control library out of the containers of a slice; absent: unknown. */
  readonly uninjected?: (allocation: string) => readonly string[];
  /** In words, that somebody else changed a memory limit of a slice in the driver; absent: nobody can. */
  readonly limitChanged?: (allocation: string) => string | null;
  /** In words, programs of a slice that are not in its MPS namespace; absent: there are no namespaces. */
  readonly outsideNamespace?: (allocation: string) => string | null;
  readonly gpus: () => readonly GpuMonitor[];
  readonly owners: ProcessOwners;
  readonly notices: SliceNotices;
  readonly evictor: Evictor;
  readonly policy: AuditPolicy;
  readonly clock: Clock;
  readonly log: Log;
}

/** Counts of the audit since the agent started. */
export interface AuditCounts {
  readonly raised: Readonly<Record<FindingCode, number>>;
  readonly evictions: number;
}

const AUDIT_MS = 5_000;
/** A container without findings on idle GPUs is audited only every fourth time; containers take turns. */
const AUDITS_AT_REST = 4;
/**
 * How often files are checked. On a disk that a container could fill, usage files in every turn; activity files in
 * every tenth, and at once when the disk has this much less free space than at the last such check.
 */
const CUT_MS = 100;
const TURNS_PER_FULL_CUT = 10;
const DISK_STEP_BYTES = 4 * 2 ** 20;
/**
 * If usage files are on file systems of a fixed size, a turn is longer. Both kinds of files are checked in every
 * fifth turn, and at once when activity files take more or less memory than at the last check.
 */
const BOUNDED_CUT_MS = 1_000;
const TURNS_PER_BOUNDED_CUT = 5;
/** A file that grew is cut at once; the finding lasts for this many audits. */
const AUDITS_GROWN = 12;
/** After a start of the agent, processes that run already greet it at their next launch. */
const SETTLING_MS = 10_000;
/** Start times in the usage file have this many values. */
const START_TICKS = 2 ** 40;

/** Checks every few seconds whether containers stay within their limits, and reports findings. */
export class Auditor {
  readonly #options: AuditorOptions;
  readonly #states = new Map<string, FindingState>();
  readonly #raised: Record<FindingCode, number> = Object.fromEntries(FINDING_CODES.map((code) => [code, 0])) as Record<
    FindingCode,
    number
  >;
  readonly #sampledUses = new Map<string, SampledUse>();
  readonly #grown = new WeakMap<Slice, { readonly found: string; readonly audit: number }>();
  #evictions = 0;
  #audits = 0;
  #startedAtMs = 0;
  #cuts = 0;
  /** At the last check of everything; null: unknown. */
  #freeBytes: number | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: AuditorOptions) {
    this.#options = options;
  }

  /** Reported findings by kind, and requested evictions, since the agent started. */
  get counts(): AuditCounts {
    return { raised: { ...this.#raised }, evictions: this.#evictions };
  }

  /** The reported findings of a slice. */
  findings(allocation: string): readonly Finding[] {
    return reportedFindings(this.#states.get(allocation) ?? NO_FINDINGS);
  }

  start(): void {
    const { clock, usageBounded } = this.#options;
    this.#startedAtMs = clock.now();
    const cancels = [
      clock.every(AUDIT_MS, () => this.#auditAll()),
      clock.every(usageBounded ? BOUNDED_CUT_MS : CUT_MS, () => this.#cutAll()),
    ];
    this.#cancel = () => cancels.forEach((cancel) => cancel());
  }

  stop(): void {
    this.#cancel();
  }

  /** Keeps what a sample shows and the next audit may no longer see. */
  sampled(gpu: GpuMonitor): void {
    const nowMs = this.#options.clock.now();
    for (const gpuSlice of gpu.gpuSlices) {
      const { live, usedMemoryBytes, slice } = gpuSlice;
      const unchargedPercent = gpuSlice.takeUnchargedPercent();
      if (unchargedPercent !== null) this.#sampledUseOf(slice).noteUncharged(gpuSlice.gpuUuid, unchargedPercent);
      if (gpuSlice.processes.length === 0) continue;
      if (usedMemoryBytes !== null && live.memoryBytes !== null && usedMemoryBytes > live.memoryBytes)
        this.#sampledUseOf(slice).noteExcess(gpuSlice.gpuUuid, usedMemoryBytes);
      for (const { pid, utilizationPercent } of gpuSlice.processes) {
        if (this.#options.slices.sessionOf(pid) !== null) continue;
        // A process without a driver report may be active.
        const active = (utilizationPercent ?? 1) > 0;
        this.#sampledUseOf(slice).noteProcess(pid, active, nowMs, () => this.#inspect(slice, pid, nowMs));
      }
    }
  }

  #sampledUseOf(slice: Slice): SampledUse {
    const known = this.#sampledUses.get(slice.id);
    if (known !== undefined) return known;
    const sampledUse = new SampledUse();
    this.#sampledUses.set(slice.id, sampledUse);
    return sampledUse;
  }

  /** Describes a process without a session; null if it is no evidence of a bypass. */
  #inspect(slice: Slice, pid: number, nowMs: number): Omit<AuditedProcess, 'active'> | null {
    const stat = processStat(pid);
    // A process that ends has closed its connection.
    if (stat === null || stat.exiting) return null;
    const slots = slice.usage.ok ? (slice.usage.reader.processes() ?? []) : [];
    const claimed = slots.some(
      (slot) => slot.startTicks === stat.startTicks % START_TICKS && namespacePids(pid).includes(slot.pid),
    );
    if (claimed && nowMs < this.#startedAtMs + SETTLING_MS) return null;
    const library = this.#libraryOf(pid, stat.startTicks);
    return { pid, name: printable(stat.name), greeted: false, claimed, library };
  }

  #auditAll(): void {
    const { slices, gpus } = this.#options;
    const gpuSlices = gpuSlicesOf(gpus());
    const idle = new Set(
      gpus()
        .filter((gpu) => gpu.idle)
        .map(({ uuid }) => uuid),
    );
    const audit = this.#audits++;
    let position = 0;
    for (const slice of slices.started.values()) {
      const rests =
        !this.#states.has(slice.id) &&
        this.#sampledUses.get(slice.id)?.isEmpty !== false &&
        slice.spec.devices.every(({ uuid }) => idle.has(uuid)) &&
        this.#uninjected(slice).length === 0 &&
        this.#outsideNamespace(slice) === null &&
        this.#limitChanged(slice) === null;
      if (rests && (audit + position++) % AUDITS_AT_REST !== 0) continue;
      this.#auditSafely(slice, gpuSlices.get(slice.id) ?? []);
    }
    for (const id of this.#states.keys()) if (!slices.started.has(id)) this.#states.delete(id);
    for (const id of this.#sampledUses.keys()) if (!slices.started.has(id)) this.#sampledUses.delete(id);
  }

  #auditSafely(slice: Slice, gpuSlices: readonly GpuSlice[] = this.#gpuSlicesOf(slice)): void {
    try {
      this.#audit(slice, gpuSlices);
    } catch (error) {
      this.#options.log.error({ err: error, allocation: slice.id }, 'the audit of a container failed');
    }
  }

  #uninjected(slice: Slice): readonly string[] {
    return this.#options.uninjected?.(slice.id) ?? [];
  }

  /** Audits a container at once: something was seen that another audit would find later. */
  auditNow(slice: Slice): void {
    this.#auditSafely(slice);
  }

  #outsideNamespace(slice: Slice): string | null {
    return this.#options.outsideNamespace?.(slice.id) ?? null;
  }

  #limitChanged(slice: Slice): string | null {
    return this.#options.limitChanged?.(slice.id) ?? null;
  }

  #gpuSlicesOf(slice: Slice): readonly GpuSlice[] {
    return this.#options.gpus().flatMap((gpu) => gpu.gpuSlices.filter((gpuSlice) => gpuSlice.slice === slice));
  }

  #audit(slice: Slice, gpuSlices: readonly GpuSlice[]): void {
    const before = this.#states.get(slice.id);
    const usesOfOtherGpus = this.#usesOfOtherGpus(slice);
    const sampledUse = this.#sampledUseOf(slice);
    const present = !sampledUse.isEmpty || gpuSlices.some((gpuSlice) => gpuSlice.present) || usesOfOtherGpus.length > 0;
    const found = audit(
      present ? this.#view(slice, gpuSlices, sampledUse, usesOfOtherGpus) : this.#viewOfAbsent(slice, gpuSlices),
    );
    if (found.length === 0 && before === undefined) return;
    const news = advance(before ?? NO_FINDINGS, found, this.#options.policy);
    if (news.state.size === 0) this.#states.delete(slice.id);
    else this.#states.set(slice.id, news.state);
    this.#tell(slice, news);
  }

  #tell(slice: Slice, news: ReturnType<typeof advance>): void {
    const { notices, evictor, owners, log } = this.#options;
    const { owner } = slice.spec;
    // Containers that share a slice share its limits: a finding is reported for each of them, and each of their pods is
    // evicted for it.
    const users = owners.usersOf(slice.spec);
    for (const finding of news.raised) {
      this.#raised[finding.code] += 1;
      log.warn(
        { allocation: slice.id, owner, finding },
        'audit finding: a container uses a GPU outside its limits or could do so',
      );
      for (const user of users)
        notices.note(user, { type: 'Warning', reason: 'GPUAudit', message: `${user.container}: ${finding.message}` });
    }
    for (const finding of news.cleared)
      log.info({ allocation: slice.id, owner, finding }, 'an audit finding is resolved');
    if (news.evict === null) return;
    for (const user of new Map(users.map((each) => [each.podUid, each])).values()) {
      this.#evictions += 1;
      log.warn(
        { allocation: slice.id, owner: user, finding: news.evict },
        'the agent evicts a pod for an audit finding',
      );
      evictor.evict(user, news.evict.message);
    }
  }

  #usesOfOtherGpus(slice: Slice): AuditView['usesOfOtherGpus'] {
    const uses: AuditView['usesOfOtherGpus'][number][] = [];
    for (const { uuid, state } of this.#options.gpus())
      for (const { allocation, pid } of state?.processesOfOtherGpus ?? [])
        if (allocation === slice.id) uses.push({ gpuUuid: uuid, process: { pid, name: nameOf(pid) } });
    return uses;
  }

  #view(
    slice: Slice,
    gpuSlices: readonly GpuSlice[],
    sampledUse: SampledUse,
    usesOfOtherGpus: AuditView['usesOfOtherGpus'],
  ): AuditView {
    const { usage } = slice;
    const { slices: all, clock } = this.#options;
    const slots = usage.ok ? (usage.reader.processes() ?? []) : [];
    const sampled = sampledUse.take(
      clock.now(),
      (pid, atMs) => all.sessionOf(pid) !== null || all.greetedSince(pid, atMs),
    );
    const processes = [...this.#greetedProcesses(gpuSlices), ...sampled.processes];
    const onGpu = new Set(processes.map(({ pid }) => pid));
    return {
      unenforced: slice.unenforced,
      usesOfOtherGpus,
      processes,
      sessions: [...slice.sessions].map(({ pid, greeting }): AuditedSession => {
        const slot = slots.find(
          (one) => one.slot === greeting.slot && one.pid === greeting.pid && one.startTicks === greeting.startTicks,
        );
        return { pid, slot: slot ?? null, onGpu: pid !== null && onGpu.has(pid) };
      }),
      devices: gpuSlices.map((gpuSlice) => deviceOf(gpuSlice, sampled)),
      ...this.#outside(slice),
    };
  }

  /**
   * The view of a container without a process on any GPU: only its settings and its usage file can be wrong, which
   * every process of the container can write.
   */
  #viewOfAbsent(slice: Slice, gpuSlices: readonly GpuSlice[]): AuditView {
    const devices = gpuSlices.map(({ gpuUuid, live }) => ({
      gpuUuid,
      memoryLimitBytes: live.memoryBytes,
      share: live.share,
      usedMemoryBytes: null,
      launches: 0,
      samples: 0,
      wentBack: false,
      uncountedMemoryBytes: null,
      unchargedTimePpm: null,
    }));
    const { unenforced } = slice;
    return { unenforced, processes: [], sessions: [], devices, usesOfOtherGpus: [], ...this.#outside(slice) };
  }

  /** The processes of the last sample that have a session; `sampled` keeps the others. */
  #greetedProcesses(gpuSlices: readonly GpuSlice[]): AuditedProcess[] {
    const greeted: AuditedProcess[] = [];
    for (const pid of new Set(gpuSlices.flatMap(({ processes }) => processes.map((process) => process.pid)))) {
      const session = this.#options.slices.sessionOf(pid);
      if (session === null) continue;
      const library = this.#libraryOf(pid, session.startTicks ?? processStat(pid)?.startTicks ?? null);
      // Only a process that greeted and lacks the library becomes a finding, so only it needs a name.
      const name = library === false ? nameOf(pid) : '';
      greeted.push({ pid, name, greeted: true, claimed: false, active: true, library });
    }
    return greeted;
  }

  /** `startTicks`: null if unknown. */
  #libraryOf(pid: number, startTicks: number | null): boolean | null {
    return startTicks === null ? null : (this.#options.libraries?.has(pid, startTicks) ?? null);
  }

  #outside(
    slice: Slice,
  ): Pick<AuditView, 'uninjected' | 'limitChanged' | 'outsideNamespace' | 'fileProblem' | 'fileGrown'> {
    const uninjected = this.#uninjected(slice);
    const limitChanged = this.#limitChanged(slice);
    const outsideNamespace = this.#outsideNamespace(slice);
    const usage = slice.reopenUsage();
    if (!usage.ok) return { uninjected, limitChanged, outsideNamespace, fileProblem: usage.reason, fileGrown: null };
    const grown = this.#grown.get(slice);
    return {
      uninjected,
      limitChanged,
      outsideNamespace,
      fileProblem: usage.reader.problem()?.reason ?? usage.reader.malformed()?.reason ?? null,
      fileGrown: grown !== undefined && this.#audits - grown.audit < AUDITS_GROWN ? grown.found : null,
    };
  }

  /** Cuts usage files that grew and audits their containers: a growing file would fill the node's disk. */
  #cutAll(): void {
    const everything = this.#checksEverything();
    if (this.#options.usageBounded && !everything) return;
    for (const slice of this.#options.slices.started.values()) {
      const found = slice.cutUsage(everything);
      if (found === null) continue;
      const known = this.#grown.get(slice);
      this.#grown.set(slice, { found, audit: this.#audits });
      if (known === undefined || this.#audits - known.audit >= AUDITS_GROWN) this.#auditSafely(slice);
    }
  }

  /** A system call for each file costs more than one for the file system that holds them. */
  #checksEverything(): boolean {
    const { usageBounded } = this.#options;
    const turn = this.#cuts++;
    const before = this.#freeBytes;
    const now = this.#options.freeBytes?.() ?? null;
    const due = turn % (usageBounded ? TURNS_PER_BOUNDED_CUT : TURNS_PER_FULL_CUT) === 0;
    const changed =
      before === null || now === null || (usageBounded ? now !== before : before - now >= DISK_STEP_BYTES);
    if (!changed && !due) return false;
    this.#freeBytes = now;
    return true;
  }
}

function nameOf(pid: number): string {
  return printable(processStat(pid)?.name ?? '');
}

/** Processes choose their own names, which may hold control characters. */
function printable(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?');
}

/** Spreads of other objects would take more time than all the rest: a device is audited every few seconds. */
function deviceOf(
  gpuSlice: GpuSlice,
  { peakBytes, unchargedPercent }: Pick<ReturnType<SampledUse['take']>, 'peakBytes' | 'unchargedPercent'>,
): AuditedDevice {
  const counters = gpuSlice.readCounters();
  const { live, gpuUuid } = gpuSlice;
  const { timePpm, uncorrectableTimePpm } = gpuSlice.timeDrift;
  return {
    gpuUuid,
    memoryLimitBytes: live.memoryBytes,
    share: live.share,
    usedMemoryBytes: peakBytes.get(gpuUuid) ?? gpuSlice.usedMemoryBytes,
    usedPercent: gpuSlice.reportedPercent,
    /** Read only beside a session with a finding. */
    get uncountedMemoryBytes() {
      return gpuSlice.slice.limits.memoryByDriver ? null : gpuSlice.uncountedMemoryBytes;
    },
    unchargedTimePpm: timePpm,
    uncorrectableTimePpm,
    shareAccount: gpuSlice.shareAccount,
    launches: counters?.launches ?? 0,
    samples: counters?.samples ?? 0,
    wentBack: gpuSlice.takeWentBack(),
    unchargedPercent: unchargedPercent.get(gpuUuid) ?? null,
  };
}
