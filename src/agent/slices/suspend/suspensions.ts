import { processStat } from '../../../host/process-stat.js';
import { Listeners } from '../../../host/listeners.js';
import type { SliceDirectories } from '../slice-directory.js';
import { readSuspension, removeSuspension, writeSuspension, type Suspension } from './suspension-file.js';

export type Member = Suspension['processes'][number];

/** Whether the process that was recorded still lives. */
export function isAlive({ pid, startTicks }: Member): boolean {
  const stat = processStat(pid);
  return stat !== null && stat.startTicks === startTicks && !stat.ended;
}

/** The bytes of processes in sum. */
export const sumOf = (processes: readonly Member[]): number => processes.reduce((all, { bytes }) => all + bytes, 0);

/**
 * What happens to the suspended containers of this node, in memory and in a file of each slice's directory, which is
 * written before the step that it names begins.
 */
export class Suspensions {
  readonly #directories: SliceDirectories;
  readonly #records = new Map<string, Suspension>();
  readonly #served = new Map<string, string>();
  readonly #steps = new Listeners<string>();

  constructor(directories: SliceDirectories) {
    this.#directories = directories;
  }

  /** The record of a container that is suspended, or in a step to or from it; null for a container that runs. */
  of(allocation: string): Suspension | null {
    const record = this.#records.get(allocation);
    return record?.processes.some(isAlive) === true ? record : null;
  }

  /** All records, also of containers whose processes have ended. */
  get all(): ReadonlyMap<string, Suspension> {
    return this.#records;
  }

  /** What the processes of a container need on the GPU when they come back; null for a container that runs. */
  bytesOf(allocation: string): number | null {
    const record = this.of(allocation);
    return record === null ? null : sumOf(record.processes);
  }

  /**
   * Calls `listener` with an allocation when a step to or from its suspension begins or ends; the returned function
   * unsubscribes.
   */
  onStep(listener: (allocation: string) => void): () => void {
    return this.#steps.add(listener);
  }

  /** The last request of the pod that was carried out or refused; null if there was none. */
  servedOf(allocation: string): string | null {
    return this.#served.get(allocation) ?? null;
  }

  /** Reads what an earlier agent kept. Rejects if the file cannot be read. */
  async load(allocation: string): Promise<Suspension | null> {
    const kept = await readSuspension(this.#directories.suspensionPathOf(allocation));
    if (kept === null) return null;
    if (kept.served !== null) this.#served.set(allocation, kept.served);
    if (kept.suspension !== null) this.#set(allocation, kept.suspension);
    return kept.suspension;
  }

  async keep(allocation: string, record: Suspension): Promise<void> {
    await this.#write(allocation, record, this.servedOf(allocation));
    this.#set(allocation, record);
  }

  /** A call asked for the GPU; the first time counts. */
  async want(allocation: string, atMs: number): Promise<void> {
    const record = this.#records.get(allocation);
    if (record !== undefined && record.wantsSinceMs === null)
      await this.keep(allocation, { ...record, wantsSinceMs: atMs });
  }

  /** The container runs again. */
  async drop(allocation: string): Promise<void> {
    const served = this.servedOf(allocation);
    if (served === null) await removeSuspension(this.#directories.suspensionPathOf(allocation));
    else await this.#write(allocation, null, served);
    this.#delete(allocation);
  }

  /** An empty request: there is none any more. */
  async serve(allocation: string, request: string): Promise<void> {
    const record = this.#records.get(allocation);
    if (request === '') this.#served.delete(allocation);
    else this.#served.set(allocation, request);
    if (record === undefined) await this.drop(allocation);
    else await this.keep(allocation, record);
  }

  /** The container starts anew: its processes have ended. */
  async forget(allocation: string): Promise<void> {
    const known = this.#delete(allocation);
    if (this.#served.delete(allocation) || known)
      await removeSuspension(this.#directories.suspensionPathOf(allocation));
  }

  #set(allocation: string, record: Suspension): void {
    this.#records.set(allocation, record);
    this.#steps.emit(allocation);
  }

  #delete(allocation: string): boolean {
    const known = this.#records.delete(allocation);
    if (known) this.#steps.emit(allocation);
    return known;
  }

  #write(allocation: string, suspension: Suspension | null, served: string | null): Promise<void> {
    return writeSuspension(this.#directories.suspensionPathOf(allocation), { suspension, served });
  }
}
