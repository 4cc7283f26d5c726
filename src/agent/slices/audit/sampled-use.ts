/**
 * Evidence about one container from the samples of the GPUs between two audits: a bypass may begin and end between
 * them. Pure apart from `inspect`, which the caller passes.
 */
import type { AuditedProcess } from './audit.js';

interface Witnessed {
  readonly process: AuditedProcess;
  readonly atMs: number;
  /** The last sample that listed it. */
  readonly lastMs: number;
}

/**
 * A greeting may wait in the socket while the driver already lists its process; an audit judges a process only this
 * long after the sample that saw it.
 */
const GREETING_MS = 1_000;
/** A process that no sample listed for longer than this has come a second time. */
const ABSENT_MS = 2_000;

/** Processes and memory that need an explanation. Times are milliseconds of the agent's clock. */
export class SampledUse {
  readonly #processes = new Map<number, Witnessed>();
  readonly #peakBytes = new Map<string, number>();
  readonly #unchargedPercent = new Map<string, number>();

  /** True while no sample showed anything that an audit must examine. */
  get isEmpty(): boolean {
    return this.#processes.size + this.#peakBytes.size + this.#unchargedPercent.size === 0;
  }

  /** A sample counted `bytes` on a GPU, which is more than the limit. */
  noteExcess(gpuUuid: string, bytes: number): void {
    this.#peakBytes.set(gpuUuid, Math.max(bytes, this.#peakBytes.get(gpuUuid) ?? 0));
  }

  /** Samples showed this part of a GPU's time, which no launch explains. */
  noteUncharged(gpuUuid: string, percent: number): void {
    this.#unchargedPercent.set(gpuUuid, Math.max(percent, this.#unchargedPercent.get(gpuUuid) ?? 0));
  }

  /**
   * A sample listed a process that has no session. `inspect` describes it, or returns null if it is no evidence of a
   * bypass; it is called again only when the process became active, because it reads files.
   */
  noteProcess(pid: number, active: boolean, atMs: number, inspect: () => Omit<AuditedProcess, 'active'> | null): void {
    const known = this.#processes.get(pid);
    if (known !== undefined && (known.process.active || !active)) {
      const again = known.process.again === true || atMs - known.lastMs > ABSENT_MS;
      this.#processes.set(pid, { ...known, process: { ...known.process, again }, lastMs: atMs });
      return;
    }
    const found = inspect();
    if (found !== null) this.#processes.set(pid, { process: { ...found, active }, atMs, lastMs: atMs });
  }

  /**
   * Removes and returns the evidence that an audit at `nowMs` examines. `explained` returns whether a process greeted
   * after the sample that saw it. Processes that were seen just now stay for the next audit.
   */
  take(
    nowMs: number,
    explained: (pid: number, atMs: number) => boolean,
  ): {
    readonly processes: readonly AuditedProcess[];
    readonly peakBytes: ReadonlyMap<string, number>;
    readonly unchargedPercent: ReadonlyMap<string, number>;
  } {
    const processes: AuditedProcess[] = [];
    for (const [pid, { process, atMs }] of this.#processes) {
      if (nowMs - atMs < GREETING_MS) continue;
      this.#processes.delete(pid);
      if (!explained(pid, atMs)) processes.push(process);
    }
    const [peakBytes, unchargedPercent] = [new Map(this.#peakBytes), new Map(this.#unchargedPercent)];
    this.#peakBytes.clear();
    this.#unchargedPercent.clear();
    return { processes, peakBytes, unchargedPercent };
  }
}
