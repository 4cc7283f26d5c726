import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { SuspendNotes } from './suspend-notes.js';
import { Stopped, type Suspender } from './suspender.js';
import type { Suspensions } from './suspensions.js';

export interface WakeWatchOptions {
  readonly slices: Slices;
  readonly suspensions: Suspensions;
  readonly suspender: Pick<Suspender, 'resume'>;
  /** Whether the container comes back with its turn. */
  readonly takesTurns: (slice: Slice) => boolean;
  readonly notes: Pick<SuspendNotes, 'waits'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A call waits at most this long until the agent knows of it. */
export const WAKE_LOOK_MS = 25;
/** A container that asked and found no room asks again after this long. */
const AGAIN_MS = 1_000;

/**
 * Resumes suspended containers whose programs ask for their GPU. It looks at a number in the usage file of each
 * suspended container: that outlives a restart of the agent, while a waiting call cannot ask twice.
 */
export class WakeWatch {
  readonly #options: WakeWatchOptions;
  /** Containers that are resumed now, or wait for room. */
  readonly #busy = new Map<string, number>();
  #cancel: (() => void) | null = null;
  #unsubscribe: () => void = () => undefined;

  constructor(options: WakeWatchOptions) {
    this.#options = options;
  }

  start(): void {
    const { suspensions } = this.#options;
    const run = (): void => this.#run(suspensions.all.size > 0);
    this.#unsubscribe = suspensions.onStep(run);
    run();
  }

  stop(): void {
    this.#unsubscribe();
    this.#run(false);
  }

  /** There is no timer while no container is suspended. */
  #run(runs: boolean): void {
    if (runs) this.#cancel ??= this.#options.clock.every(WAKE_LOOK_MS, () => this.#look());
    else {
      this.#cancel?.();
      this.#cancel = null;
    }
  }

  #look(): void {
    const { slices, suspensions, clock } = this.#options;
    for (const [allocation, record] of suspensions.all) {
      const slice = slices.started.get(allocation);
      if (slice === undefined || record.step !== 'suspended') continue;
      const calls = slice.calls();
      if (calls === null || String(calls.asked) === record.asked) continue;
      if (clock.now() < (this.#busy.get(allocation) ?? 0)) continue;
      const isFirst = !this.#busy.has(allocation);
      this.#busy.set(allocation, Infinity);
      void this.#wake(slice, isFirst).finally(() => {
        if (suspensions.of(allocation) === null) this.#busy.delete(allocation);
        else this.#busy.set(allocation, clock.now() + AGAIN_MS);
      });
    }
  }

  async #wake(slice: Slice, isFirst: boolean): Promise<void> {
    const { suspensions, suspender, takesTurns, notes, clock, log } = this.#options;
    try {
      await suspensions.want(slice.id, clock.now());
      if (suspensions.of(slice.id)?.held === true || takesTurns(slice)) return;
      const resumed = await suspender.resume(slice.id, 0);
      if (resumed.ok || resumed.code !== 'full') return;
      log.debug({ allocation: slice.id, reason: resumed.reason }, 'a container waits for its GPU');
      if (isFirst) notes.waits(slice);
    } catch (error) {
      if (error instanceof Stopped) return;
      log.error({ err: error, allocation: slice.id }, 'a container that asks for its GPU could not be resumed');
    }
  }
}
