import type { TurnMember } from '../../../gpu/turns.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import type { UseObservation } from '../observation.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { Suspended, Suspender } from './suspender.js';
import type { Suspensions } from './suspensions.js';
import type { CrowdedGpu } from './turn-keeper.js';

export interface TurnGpusOptions {
  readonly slices: Slices;
  readonly suspensions: Suspensions;
  readonly suspender: Pick<Suspender, 'suspend' | 'resume'>;
  readonly observeUse: () => readonly UseObservation[];
  /** All memory of a GPU; null for a GPU that has left the node. */
  readonly memoryBytesOf: (gpuUuid: string) => number | null;
  readonly clock: Clock;
  /** CLOCK_MONOTONIC. */
  readonly nowNs: () => bigint;
  readonly log: Log;
}

/** As users measured it, before this agent has: 6 GB/s. */
const USUAL_BYTES_PER_MS = 6e6;
/** Shorter moves tell nothing about the speed. */
const LEAST_MEASURED_MS = 100;

const LOOK_MS = 1_000;

/** What is known of a container beside its slice. */
interface Seat {
  /** Since when it runs, or waits. */
  sinceMs: number;
  /** What the calls of its programs had asked before it waited for its first turn; null: it does not wait for that. */
  asked: bigint | null;
  wantsSinceMs: number | null;
}

/**
 * The containers that take turns on their GPU, and all that are beside them. A container that starts where its GPU has
 * no room waits for its first turn: its programs run until their first call of the driver.
 */
export class TurnGpus {
  readonly #options: TurnGpusOptions;
  readonly #seats = new Map<string, Seat>();
  /** When programs of a GPU were last asked whether they work. */
  readonly #lookedMs = new Map<string, number>();
  #bytesPerMs = USUAL_BYTES_PER_MS;

  constructor(options: TurnGpusOptions) {
    this.#options = options;
  }

  /** A container is about to start: it waits, unless its GPU has room for it beside all that are on it. */
  begin(slice: Slice): void {
    this.#seats.delete(slice.id);
    if (slice.spec.takesTurns !== true) return;
    const gpu = this.#gpuOf(slice);
    const others = this.#membersOn(gpu.uuid).filter(({ id, step }) => id !== slice.id && step !== 'suspended');
    const own = this.#amountsOf(slice);
    const isRoom = (amount: 'cores' | 'memoryBytes'): boolean =>
      others.reduce((sum, member) => sum + member[amount], own[amount]) <= gpu[amount];
    if (isRoom('cores') && isRoom('memoryBytes')) this.#run(slice);
    else this.#wait(slice);
  }

  /** The container was found running, or waiting for its first turn. */
  restore(slice: Slice): void {
    if (slice.limits.mark !== 'waits') return;
    // A call may wait already, which does not ask again.
    if (slice.spec.takesTurns === true) this.#wait(slice, this.#options.clock.now());
    else slice.limits.announce('not');
  }

  /** Whether its turn decides when a container is resumed. */
  decides(slice: Slice): boolean {
    return slice.spec.takesTurns === true;
  }

  /** The GPUs on which a container waits for its turn. */
  waiting(): readonly CrowdedGpu[] {
    const { slices, clock } = this.#options;
    for (const id of this.#seats.keys()) if (!slices.started.has(id)) this.#seats.delete(id);
    for (const [id, seat] of this.#seats) {
      if (seat.asked === null || seat.wantsSinceMs !== null) continue;
      const calls = slices.started.get(id)?.calls() ?? null;
      if (calls !== null && calls.asked !== seat.asked) seat.wantsSinceMs = clock.now();
    }
    const wanting = [...slices.started.values()].filter((slice) => this.#wantsSinceMs(slice) !== null);
    const uuids = new Set(wanting.map((slice) => slice.spec.devices[0]?.uuid ?? ''));
    return [...uuids].flatMap((uuid) => {
      const members = this.#membersOn(uuid);
      this.#lookForWork(uuid);
      return [{ ...this.#room(uuid), members }];
    });
  }

  /** Makes room; a reason if the container still runs. */
  async suspend(id: string): Promise<string | null> {
    const { slices, suspender } = this.#options;
    const slice = slices.started.get(id);
    if (slice === undefined) return null;
    const beganMs = this.#options.clock.now();
    const done = await suspender.suspend(id, 'turn', false);
    if (done.ok) {
      this.#measure(beganMs, done.bytes);
      return null;
    }
    // It has nothing on the GPU, and begins anew with its next call.
    if (slice.sessions.size > 0 || !this.#isUnused(id)) return done.reason;
    this.#wait(slice);
    return null;
  }

  /** Lets a container run; a reason if it does not. */
  async resume(id: string): Promise<string | null> {
    const { slices, suspender, clock } = this.#options;
    const slice = slices.started.get(id);
    if (slice === undefined) return null;
    if (slice.limits.mark === 'waits') {
      this.#run(slice);
      return null;
    }
    const beganMs = clock.now();
    const done: Suspended = await suspender.resume(id);
    if (!done.ok) return done.reason;
    this.#measure(beganMs, done.bytes);
    this.#seats.set(id, { sinceMs: clock.now(), asked: null, wantsSinceMs: null });
    return null;
  }

  #run(slice: Slice): void {
    this.#seats.set(slice.id, { sinceMs: this.#options.clock.now(), asked: null, wantsSinceMs: null });
    slice.limits.announce('not');
  }

  #wait(slice: Slice, wantsSinceMs: number | null = null): void {
    const asked = slice.calls()?.asked ?? 0n;
    this.#seats.set(slice.id, { sinceMs: this.#options.clock.now(), asked, wantsSinceMs });
    slice.limits.announce('waits');
  }

  #membersOn(gpuUuid: string): readonly TurnMember[] {
    const { slices, observeUse } = this.#options;
    const uses = new Map(observeUse().map(({ allocation, devices }) => [allocation, devices]));
    return [...slices.started.values()].flatMap((slice): TurnMember[] => {
      const at = slice.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid);
      if (at < 0) return [];
      const use = uses.get(slice.id)?.find((device) => device.gpuUuid === gpuUuid);
      return [this.#memberOf(slice, use)];
    });
  }

  #memberOf(slice: Slice, use: UseObservation['devices'][number] | undefined): TurnMember {
    const { suspensions, clock } = this.#options;
    const seat = this.#seats.get(slice.id);
    const record = suspensions.of(slice.id);
    const isWaiting = slice.limits.mark === 'waits';
    const isAway = record?.step === 'suspended';
    return {
      id: slice.id,
      priority: slice.limits.live[0]?.priority ?? 'normal',
      ...this.#amountsOf(slice),
      step: isWaiting || isAway ? 'suspended' : record === null ? 'running' : 'moving',
      sinceMs: record?.sinceMs ?? seat?.sinceMs ?? 0,
      transferMs: Math.ceil((suspensions.bytesOf(slice.id) ?? use?.usedMemoryBytes ?? 0) / this.#bytesPerMs),
      wantsSinceMs: this.#wantsSinceMs(slice),
      workedMs: (use?.usedPercent ?? 0) > 0 ? clock.now() : this.#calledMs(slice),
      staysSinceMs: this.decides(slice) ? null : 0,
    };
  }

  /** Since when a call of it waits; null: none does, or someone holds it. */
  #wantsSinceMs(slice: Slice): number | null {
    if (!this.decides(slice)) return null;
    if (slice.limits.mark === 'waits') return this.#seats.get(slice.id)?.wantsSinceMs ?? null;
    const record = this.#options.suspensions.of(slice.id);
    return record?.step === 'suspended' && !record.held ? record.wantsSinceMs : null;
  }

  /** When a program of it last launched, copied or allocated; the agent asks once a second while another one waits. */
  #calledMs(slice: Slice): number {
    const { clock, nowNs } = this.#options;
    const calls = slice.calls();
    return calls === null ? clock.now() : clock.now() - Number((nowNs() - calls.workedAtNs) / 1_000_000n);
  }

  #lookForWork(gpuUuid: string): void {
    const { slices, suspensions, clock } = this.#options;
    if (clock.now() < (this.#lookedMs.get(gpuUuid) ?? 0) + LOOK_MS) return;
    this.#lookedMs.set(gpuUuid, clock.now());
    for (const slice of slices.started.values()) {
      const isHere = slice.spec.devices[0]?.uuid === gpuUuid && suspensions.of(slice.id) === null;
      if (isHere && this.decides(slice) && slice.limits.mark === 'not') slice.limits.publish(slice.limits.live);
    }
  }

  #isUnused(id: string): boolean {
    const use = this.#options.observeUse().find(({ allocation }) => allocation === id);
    return use?.devices.every(({ usedMemoryBytes }) => usedMemoryBytes === 0) !== false;
  }

  #measure(beganMs: number, bytes: number): void {
    const tookMs = this.#options.clock.now() - beganMs;
    if (tookMs >= LEAST_MEASURED_MS && bytes > 0) this.#bytesPerMs = bytes / tookMs;
  }

  #amountsOf({ spec }: Slice): { readonly cores: number; readonly memoryBytes: number } {
    const [device] = spec.devices;
    const all = device === undefined ? 0 : (this.#options.memoryBytesOf(device.uuid) ?? 0);
    return { cores: device?.share ?? 0, memoryBytes: device?.memoryBytes ?? all };
  }

  #gpuOf({ spec }: Slice): Omit<CrowdedGpu, 'members'> {
    return this.#room(spec.devices[0]?.uuid ?? '');
  }

  #room(uuid: string): Omit<CrowdedGpu, 'members'> {
    return { uuid, cores: CORES_PER_GPU, memoryBytes: this.#options.memoryBytesOf(uuid) ?? 0 };
  }
}
