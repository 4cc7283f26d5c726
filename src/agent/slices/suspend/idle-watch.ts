import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { LIMIT_ANNOTATIONS, readContainerAnnotation } from '../../../kube/limit-annotations.js';
import type { UseObservation } from '../observation.js';
import type { PodLimitAnnotations } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import { idleTime, type Quiet } from './idle-time.js';
import type { SuspendNotes } from './suspend-notes.js';
import { Stopped, type Suspender } from './suspender.js';
import type { Suspensions } from './suspensions.js';

export interface IdleWatchOptions {
  readonly slices: Slices;
  readonly suspensions: Pick<Suspensions, 'of'>;
  readonly suspender: Pick<Suspender, 'suspend'>;
  readonly limitAnnotations: PodLimitAnnotations;
  readonly usersOf: ProcessOwners['usersOf'];
  readonly observeUse: () => readonly UseObservation[];
  /** `--suspend-idle`; null: only pods that say so. */
  readonly suspendIdleMs: number | null;
  readonly notes: SuspendNotes;
  /** CLOCK_MONOTONIC. */
  readonly nowNs: () => bigint;
  readonly clock: Clock;
  readonly log: Log;
}

const LOOK_MS = 1_000;
/** A container is looked at so often during the time after which it is idle, but not more rarely than this. */
const LOOKS = 60;
const RAREST_LOOK_MS = 15_000;
/** A container that was moved stays at least this many times as long as that took: at most a tenth is transfers. */
const REST_FACTOR = 20;

interface Watched {
  readonly quiet: Quiet | null;
  readonly lookAtNs: bigint;
  /** Null: it is not being suspended. */
  readonly suspending: boolean;
  /** How long the last suspension took. */
  readonly tookMs: number;
}

const NEW: Watched = { quiet: null, lookAtNs: 0n, suspending: false, tookMs: 0 };

/** Suspends containers that have launched, copied and allocated nothing for as long as their pod or the node says. */
export class IdleWatch {
  readonly #options: IdleWatchOptions;
  readonly #watched = new Map<string, Watched>();
  #cancel: () => void = () => undefined;

  constructor(options: IdleWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(LOOK_MS, () => this.#look());
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const { slices, observeUse } = this.#options;
    for (const id of this.#watched.keys()) if (!slices.started.has(id)) this.#watched.delete(id);
    const watched = [...slices.started.values()].flatMap((slice) => {
      const limitMs = this.#limitOf(slice);
      return limitMs === null ? [] : [{ slice, limitMs }];
    });
    if (watched.length === 0) return;
    const uses = new Map(observeUse().map(({ allocation, devices }) => [allocation, devices]));
    for (const { slice, limitMs } of watched) this.#lookAt(slice, limitMs, uses.get(slice.id) ?? []);
  }

  /** The longest time that one of its containers wants; null: it is never suspended when idle. */
  #limitOf({ spec }: Slice): number | null {
    const { usersOf, limitAnnotations, suspendIdleMs } = this.#options;
    const limits = usersOf(spec).map(({ podUid, container }) => {
      const annotations = limitAnnotations.annotations(podUid);
      if (annotations === null) return Infinity;
      const { value } = readContainerAnnotation(
        LIMIT_ANNOTATIONS.suspendIdle,
        (key) => annotations.get(key),
        container,
      );
      return value ?? suspendIdleMs ?? Infinity;
    });
    const limitMs = Math.max(...limits);
    return Number.isFinite(limitMs) ? limitMs : null;
  }

  #lookAt(slice: Slice, limitMs: number, devices: UseObservation['devices']): void {
    const { suspensions, nowNs: now } = this.#options;
    const known = this.#watched.get(slice.id) ?? NEW;
    const nowNs = now();
    if (known.suspending || nowNs < known.lookAtNs) return;
    const holds = devices.some(({ usedMemoryBytes }) => usedMemoryBytes > 0);
    const calls = slice.calls();
    if (suspensions.of(slice.id) !== null || !holds || calls === null) {
      this.#watched.set(slice.id, { ...known, quiet: null });
      return;
    }
    const isBusy = devices.some(({ usedPercent }) => usedPercent > 0);
    const { quiet, publish, idleMs } = idleTime(known.quiet, { nowNs, workedAtNs: calls.workedAtNs, isBusy });
    if (publish) slice.limits.publish(slice.limits.live);
    const everyMs = Math.min(RAREST_LOOK_MS, limitMs / LOOKS);
    this.#watched.set(slice.id, { ...known, quiet, lookAtNs: nowNs + BigInt(Math.ceil(everyMs)) * 1_000_000n });
    if (idleMs >= Math.max(limitMs, REST_FACTOR * known.tookMs)) void this.#suspend(slice, idleMs);
  }

  async #suspend(slice: Slice, idleMs: number): Promise<void> {
    const { suspender, notes, nowNs, log } = this.#options;
    const startNs = nowNs();
    this.#watched.set(slice.id, { ...(this.#watched.get(slice.id) ?? NEW), suspending: true });
    log.info({ allocation: slice.id, owner: slice.spec.owner, idleMs }, 'a container is idle and is suspended');
    try {
      const done = await suspender.suspend(slice.id, 'idle', false);
      if (!done.ok) notes.refused(slice, done);
    } catch (error) {
      if (error instanceof Stopped) return;
      log.error({ err: error, allocation: slice.id }, 'an idle container could not be suspended');
    } finally {
      const tookMs = Number((nowNs() - startNs) / 1_000_000n);
      this.#watched.set(slice.id, { ...NEW, tookMs });
    }
  }
}
