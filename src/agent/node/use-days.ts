import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';
import type { Log } from '../../host/log.js';
import { readStateFile } from '../../host/state-file.js';

/** What a container had of GPUs in some hours. */
export interface ContainerHours {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly container: string;
  /** Absent without a quota group. */
  quotaGroup?: string;
  /** Indexes of the GPUs that it had, ascending. */
  gpus: readonly number[];
  /** Seconds of whole GPUs that were allocated to it: half a GPU for an hour is 1,800. */
  allocatedSeconds: number;
  /** Seconds of whole GPUs that it used. */
  usedSeconds: number;
  /** Time in which its launches were throttled. */
  throttledSeconds: number;
}

/** The hours of a node, in sum of each container. */
export interface HourlyUse {
  /** Beginning of the first hour that is counted, milliseconds since 1970. */
  readonly fromMs: number;
  readonly containers: readonly ContainerHours[];
}

/** When a container used a GPU last, and its launches until then. */
export interface LastUse {
  readonly lastUsedMs: number | null;
  readonly launches: number;
}

interface Added {
  readonly allocatedSeconds?: number;
  readonly usedSeconds?: number;
  readonly throttledSeconds?: number;
  readonly quotaGroup?: string | null;
  readonly gpus?: readonly number[];
}

/** By the beginning of the hour, then by pod and container. */
type Hours = Map<number, Map<string, ContainerHours>>;

const DAY_MS = 86_400_000;
/** Days that are kept, today included. */
export const KEPT_DAYS = 35;
/** Use is written this often; a killed agent loses as much. */
const WRITE_MS = 300_000;
const LAST_USE = 'last-use.json';

/**
 * GPU-hours of a node on disk: a file for each day (UTC), of which only today's is in memory. Files that cannot be read
 * are left out: they are statistics, and the agent does without.
 */
export class UseDays {
  /** By pod, container and GPU; written with the hours. */
  lastUse: ReadonlyMap<string, LastUse>;
  readonly #directory: string;
  readonly #log: Log;
  /** The hours of today, and of the day before until they are written. */
  #hours: Hours;
  #writtenMs: number | null = null;
  #writing: Promise<void> = Promise.resolve();

  private constructor(directory: string, log: Log, hours: Hours, lastUse: ReadonlyMap<string, LastUse>) {
    this.#directory = directory;
    this.#log = log;
    this.#hours = hours;
    this.lastUse = lastUse;
  }

  /** Opens the directory; creates it where it is missing. */
  static async open(directory: string, now: number, log: Log): Promise<UseDays> {
    await mkdir(directory, { recursive: true, mode: 0o750 });
    await removeHalfWritten(directory);
    const last = (await readJson(join(directory, LAST_USE))) as Readonly<Record<string, LastUse>> | null;
    return new UseDays(directory, log, await readDay(directory, dayOf(now)), new Map(Object.entries(last ?? {})));
  }

  /** Adds to an hour of a container. */
  add(hourMs: number, { namespace, pod, podUid, container }: ContainerRef, added: Added): void {
    const hour = this.#hours.get(hourMs) ?? new Map<string, ContainerHours>();
    this.#hours.set(hourMs, hour);
    const key = `${podUid}/${container}`;
    const known = hour.get(key) ?? emptyHours({ namespace, pod, podUid, container });
    hour.set(key, known);
    known.allocatedSeconds += added.allocatedSeconds ?? 0;
    known.usedSeconds += added.usedSeconds ?? 0;
    known.throttledSeconds += added.throttledSeconds ?? 0;
    if (added.quotaGroup !== undefined && added.quotaGroup !== null) known.quotaGroup = added.quotaGroup;
    known.gpus = union(known.gpus, added.gpus ?? []);
  }

  /** Writes from time to time. */
  keep(now: number): void {
    this.#writtenMs ??= now;
    if (now - this.#writtenMs < WRITE_MS && dayOf(now) === dayOf(this.#writtenMs)) return;
    this.#writtenMs = now;
    void this.write(now);
  }

  /** Writes the hours of today and the last use, and removes files that are too old. Never rejects. */
  write(now: number): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        for (const [day, hours] of byDay(this.#hours)) await this.#put(`${day}.json`, plain(hours));
        await this.#put(LAST_USE, Object.fromEntries(this.lastUse));
        this.#hours = new Map([...this.#hours].filter(([hourMs]) => dayOf(hourMs) === dayOf(now)));
        const oldest = dayOf(now - (KEPT_DAYS - 1) * DAY_MS);
        for (const name of await readdir(this.#directory))
          if (isDay(name) && name.slice(0, 10) < oldest) await rm(join(this.#directory, name), { force: true });
      } catch (error) {
        this.#log.warn({ err: error, directory: this.#directory }, 'the use of GPUs could not be saved; retrying');
      }
    });
    return this.#writing;
  }

  /** The sums of the containers since a time, from the beginning of its hour. */
  async since(sinceMs: number): Promise<HourlyUse> {
    await this.#writing;
    const inMemory = byDay(this.#hours);
    const names = (await readdir(this.#directory)).filter(isDay).map((name) => name.slice(0, 10));
    const days = [...new Set([...names, ...inMemory.keys()])].sort().filter((day) => day >= dayOf(sinceMs));
    const sums = new Map<string, ContainerHours>();
    let fromMs = Infinity;
    for (const day of days) {
      for (const [hourMs, hour] of inMemory.get(day) ?? (await readDay(this.#directory, day))) {
        if (hourMs + 3_600_000 <= sinceMs) continue;
        fromMs = Math.min(fromMs, hourMs);
        for (const [key, one] of hour) sums.set(key, added(sums.get(key), one));
      }
    }
    return { fromMs: Number.isFinite(fromMs) ? fromMs : sinceMs, containers: [...sums.values()] };
  }

  #put(name: string, value: unknown): Promise<void> {
    return writeFileAtomically(join(this.#directory, name), JSON.stringify(value), { durable: false });
  }
}

function emptyHours(owner: ContainerRef): ContainerHours {
  const { namespace, pod, podUid, container } = owner;
  return { namespace, pod, podUid, container, gpus: [], allocatedSeconds: 0, usedSeconds: 0, throttledSeconds: 0 };
}

function added(sum: ContainerHours | undefined, one: ContainerHours): ContainerHours {
  if (sum === undefined) return { ...one };
  return {
    ...sum,
    ...(one.quotaGroup === undefined ? {} : { quotaGroup: one.quotaGroup }),
    gpus: union(sum.gpus, one.gpus),
    allocatedSeconds: sum.allocatedSeconds + one.allocatedSeconds,
    usedSeconds: sum.usedSeconds + one.usedSeconds,
    throttledSeconds: sum.throttledSeconds + one.throttledSeconds,
  };
}

function union(a: readonly number[], b: readonly number[]): readonly number[] {
  return b.every((one) => a.includes(one)) ? a : [...new Set([...a, ...b])].sort((one, other) => one - other);
}

function byDay(hours: Hours): ReadonlyMap<string, Hours> {
  const days = new Map<string, Hours>();
  for (const [hourMs, hour] of hours) {
    const day: Hours = days.get(dayOf(hourMs)) ?? new Map<number, Map<string, ContainerHours>>();
    days.set(dayOf(hourMs), day.set(hourMs, hour));
  }
  return days;
}

function plain(hours: Hours): object {
  return Object.fromEntries([...hours].map(([hourMs, hour]) => [hourMs, [...hour.values()]]));
}

async function readDay(directory: string, day: string): Promise<Hours> {
  const read = (await readJson(join(directory, `${day}.json`))) as Readonly<Record<string, ContainerHours[]>> | null;
  return new Map(
    Object.entries(read ?? {}).map(([hourMs, hour]) => [
      Number(hourMs),
      new Map(hour.map((one) => [`${one.podUid}/${one.container}`, one])),
    ]),
  );
}

/** Null for a file that is missing or broken. */
async function readJson(path: string): Promise<unknown> {
  try {
    const value = JSON.parse(await readStateFile(path)) as unknown;
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** The day of a time, as `2026-11-28`. */
function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function isDay(name: string): boolean {
  return /^\d{4}-\d\d-\d\d\.json$/u.test(name);
}
