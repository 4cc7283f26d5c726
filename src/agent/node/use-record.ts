import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { HourlyUse, LastUse, UseDays } from './use-days.js';
import type { NodeSnapshot, UseMoment } from './view.js';

type SliceUse = UseMoment['allocations'][number]['slices'][number];

/** Why launches of a container were throttled: by its own share, by neighbours of high priority, or by lending. */
export type ThrottleReason = 'share' | 'priority' | 'lending';

/** What one container did on one GPU in a minute; times in seconds. */
export interface MinuteUse {
  /** Beginning of the minute, milliseconds since 1970. */
  readonly atMs: number;
  /** How much of the minute was observed. */
  readonly seconds: number;
  /** Seconds of the whole GPU that it used. */
  readonly used: number;
  /** Highest memory use. */
  readonly memoryBytes: number;
  /** Time in which its launches were throttled, by reason. */
  readonly throttled: Readonly<Record<ThrottleReason, number>>;
}

/** The last minutes of one container on one GPU, oldest first. */
export interface SliceMinutes {
  readonly owner: ContainerRef;
  readonly gpuUuid: string;
  readonly minutes: readonly MinuteUse[];
}

/** A part of a GPU that a container holds. */
export interface HeldGpu {
  readonly owner: ContainerRef;
  readonly quotaGroup: string | null;
  /** Cores, in sum over its GPUs. */
  readonly cores: number;
  /** Indexes of its GPUs. */
  readonly gpus: readonly number[];
}

export interface UseRecordOptions {
  readonly days: UseDays;
  /** What containers hold now. */
  readonly held: () => readonly HeldGpu[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** What containers hold is counted this often. */
const HELD_MS = 10_000;
/** Minutes that are kept of each container: three hours. */
const KEPT_MINUTES = 180;
/** A moment stands for at most this long before it: the agent did not look in between. */
const LONGEST_MS = 10_000;

interface Followed {
  readonly owner: ContainerRef;
  readonly gpuUuid: string;
  launches: number;
  throttledSeconds: number;
  lastUsedMs: number | null;
  open:
    | ({ -readonly [field in Exclude<keyof MinuteUse, 'throttled'>]: number } & {
        readonly throttled: Record<ThrottleReason, number>;
      })
    | null;
  readonly minutes: MinuteUse[];
}

/**
 * What containers used: when each used its GPUs last, the last three hours by the minute, and GPU-hours by the hour
 * for weeks. It lives from the moments that the display samples anyway.
 */
export class UseRecord {
  readonly #options: UseRecordOptions;
  #followed = new Map<string, Followed>();
  #lastMs: number | null = null;
  /** Time of which the held GPUs are counted. */
  #heldMs: number | null = null;

  constructor(options: UseRecordOptions) {
    this.#options = options;
  }

  /** When a container used a GPU last, milliseconds since 1970; null if it has not since it is observed. */
  lastUsedMs(owner: Pick<ContainerRef, 'podUid' | 'container'>, gpuUuid: string): number | null {
    return this.#followed.get(keyOf(owner, gpuUuid))?.lastUsedMs ?? null;
  }

  /** Takes the use of a moment into account. */
  add({ atMs, allocations }: UseMoment): void {
    const seconds = this.#lastMs === null ? 0 : Math.max(0, Math.min(atMs - this.#lastMs, LONGEST_MS)) / 1000;
    this.#lastMs = atMs;
    const { days } = this.#options;
    const onGpu = new Map<string, SliceUse[]>();
    for (const slice of allocations.flatMap(({ slices }) => slices))
      onGpu.set(slice.gpuUuid, [...(onGpu.get(slice.gpuUuid) ?? []), slice]);
    const followed = new Map<string, Followed>();
    for (const { owner, slices } of allocations) {
      for (const slice of slices) {
        const key = keyOf(owner, slice.gpuUuid);
        const one = this.#followed.get(key) ?? follow(owner, slice, days.lastUse.get(key) ?? null);
        followed.set(key, one);
        count(one, slice, onGpu.get(slice.gpuUuid) ?? [], atMs, seconds, days);
      }
    }
    this.#followed = followed;
    this.#countHeld(atMs);
    days.lastUse = new Map(
      [...followed].map(([key, { lastUsedMs, launches }]): [string, LastUse] => [key, { lastUsedMs, launches }]),
    );
  }

  /** The last minutes of a pod's containers from a time on, oldest first. */
  minutes(namespace: string, pod: string, sinceMs: number): readonly SliceMinutes[] {
    return [...this.#followed.values()]
      .filter(({ owner }) => owner.namespace === namespace && owner.pod === pod)
      .map(({ owner, gpuUuid, minutes, open }) => ({
        owner,
        gpuUuid,
        minutes: [...minutes, ...(open === null ? [] : [open])].filter(({ atMs }) => atMs + MINUTE_MS > sinceMs),
      }));
  }

  /** GPU-hours from a time on, in sum of each container; and from when on they are known. */
  hours(sinceMs: number): Promise<HourlyUse> {
    return this.#options.days.since(sinceMs);
  }

  /** Counts what containers held since the last time. */
  #countHeld(atMs: number): void {
    const seconds = this.#heldMs === null ? 0 : Math.max(0, Math.min(atMs - this.#heldMs, 2 * HELD_MS)) / 1000;
    if (this.#heldMs !== null && seconds * 1000 < HELD_MS) return;
    this.#heldMs = atMs;
    const { held, days } = this.#options;
    for (const { owner, quotaGroup, cores, gpus } of held())
      days.add(hourOf(atMs), owner, { allocatedSeconds: (cores / CORES_PER_GPU) * seconds, quotaGroup, gpus });
    days.keep(atMs);
  }
}

/** The use of started containers that a snapshot shows. */
export function momentOf({ atMs, gpus, allocations }: NodeSnapshot): UseMoment {
  return {
    ...{ atMs, gpus },
    allocations: allocations.flatMap(({ id, phase, owners, slices }) => {
      const owner = owners.at(-1);
      if (phase !== 'started' || owner === undefined) return [];
      const seen = slices.map(({ priority = 'normal', share, softLimit, ...slice }) => ({
        ...slice,
        ...{ priority, borrows: softLimit !== null && softLimit > share },
      }));
      return [{ id, owner, slices: seen }];
    }),
  };
}

function follow(owner: ContainerRef, { gpuUuid, counters }: SliceUse, known: LastUse | null): Followed {
  const { launches = 0, throttledSeconds = 0 } = counters ?? {};
  return {
    ...{ owner, gpuUuid, throttledSeconds, open: null, minutes: [] },
    // Launches that no agent saw are use at an unknown time, which counts as now.
    launches: Math.min(launches, known?.launches ?? 0),
    lastUsedMs: known?.lastUsedMs ?? null,
  };
}

function count(
  one: Followed,
  slice: SliceUse,
  onGpu: readonly SliceUse[],
  atMs: number,
  seconds: number,
  days: UseDays,
): void {
  const { launches = 0, throttledSeconds = 0 } = slice.counters ?? {};
  if (slice.usedPercent > 0 || launches > one.launches) one.lastUsedMs = atMs;
  // Several threads may be throttled at once; what counts is the time in which one was.
  const throttled = Math.min(seconds, Math.max(0, throttledSeconds - one.throttledSeconds));
  one.launches = launches;
  one.throttledSeconds = throttledSeconds;
  const used = (slice.usedPercent / 100) * seconds;
  const minuteMs = Math.floor(atMs / MINUTE_MS) * MINUTE_MS;
  if (one.open !== null && one.open.atMs !== minuteMs) {
    one.minutes.push(one.open);
    if (one.minutes.length > KEPT_MINUTES) one.minutes.shift();
    one.open = null;
  }
  one.open ??= {
    ...{ atMs: minuteMs, seconds: 0, used: 0, memoryBytes: 0 },
    throttled: { share: 0, priority: 0, lending: 0 },
  };
  one.open.memoryBytes = Math.max(one.open.memoryBytes, slice.usedMemoryBytes);
  one.open.seconds += seconds;
  one.open.used += used;
  if (throttled > 0) one.open.throttled[reasonOf(slice, onGpu)] += throttled;
  if (used > 0 || throttled > 0) days.add(hourOf(atMs), one.owner, { usedSeconds: used, throttledSeconds: throttled });
}

/** Why a throttled slice is held back, from what the others on its GPU do. */
export function reasonOf(slice: SliceUse, onGpu: readonly SliceUse[]): ThrottleReason {
  const atWork = onGpu.filter((other) => other !== slice && other.usedPercent > 0);
  if (slice.priority === 'low' && atWork.some(({ priority }) => priority === 'high')) return 'priority';
  if (slice.borrows && atWork.some(({ priority, borrows }) => priority === 'high' || borrows)) return 'lending';
  return 'share';
}

function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS) * HOUR_MS;
}

function keyOf({ podUid, container }: Pick<ContainerRef, 'podUid' | 'container'>, gpuUuid: string): string {
  return `${podUid}/${container}/${gpuUuid}`;
}
