import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { Rounds } from '../../../host/rounds.js';
import type { GroupLimiter, GroupLimits } from '../../gpus/index.js';
import type { SliceNotices } from '../ports.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { GpuEnforcement, MemoryEnforcer } from './gpu-enforcement.js';
import { GroupLimitSetter } from './group-limit-setter.js';
import { GroupPlaces, type GroupPlacesOptions } from './group-places.js';
import { GroupSearch } from './group-search.js';
import { LimitChanges } from './limit-changes.js';
import { isSame, wordsOf } from './limit-plan.js';
import type { SliceGroups } from './slice-groups.js';

export interface DriverMemoryOptions extends GroupPlacesOptions {
  /** Null if no driver of this kind keeps memory limits. */
  readonly limiter: GroupLimiter | null;
  readonly enforcement: GpuEnforcement;
  readonly groups: SliceGroups;
  readonly slices: Slices;
  readonly notices: SliceNotices;
  readonly clock: Clock;
  readonly log: Log;
}

/** Interval in which limits are read back. */
const COMPARE_MS = 5_000;
/** Greetings that come together are looked at together. */
const LOOK_MS = 20;
/** The start of a container waits this long at most; NRI gives a plugin two seconds. */
const START_MS = 1_000;

/**
 * Memory limits of slices in the driver: sets them in the control groups of the containers and pods, follows their
 * changes, and reads them back. Keeps nothing on disk: after a restart of the agent the groups are found again.
 */
export class DriverMemory {
  readonly #options: DriverMemoryOptions;
  /** Null on a node whose driver never has limits. */
  readonly #setter: GroupLimitSetter | null;
  readonly #places: GroupPlaces;
  readonly #changes: LimitChanges;
  readonly #searches: GroupSearch;
  readonly #rounds: Rounds;
  readonly #running = new Set<Promise<void>>();
  /** The last logged failure of each slice. */
  readonly #failures = new Map<string, string>();
  #unsubscribe: () => void = () => undefined;
  #cancelLook: (() => void) | null = null;

  constructor(options: DriverMemoryOptions) {
    this.#options = options;
    this.#setter = options.limiter === null ? null : new GroupLimitSetter(options.limiter);
    this.#places = new GroupPlaces(options);
    this.#changes = new LimitChanges(options.clock);
    this.#searches = new GroupSearch(options.clock, (allocation) => this.#lookFor(allocation));
    this.#rounds = new Rounds(options.clock, COMPARE_MS, () => this.#compareAll());
  }

  /** Whether the driver enforces limits on any GPU. */
  get isUsed(): boolean {
    return this.#options.enforcement.uses;
  }

  /** Rejects with a StartupError if `--memory-enforcement` demands what the driver cannot do. */
  async start(): Promise<void> {
    const { enforcement, slices } = this.#options;
    await this.#examine();
    enforcement.require();
    this.#unsubscribe = slices.onChange(() => this.#lookSoon());
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#cancelLook?.();
    this.#searches.stop();
    await this.#rounds.stop();
    await Promise.all(this.#running);
  }

  /** What enforces memory limits on a GPU. */
  of(gpuUuid: string): MemoryEnforcer {
    return this.#options.enforcement.of(gpuUuid);
  }

  /** Whether the driver enforces the limit of a slice on a GPU now, in every container of it that is known. */
  enforces(slice: Slice, gpuUuid: string): boolean {
    const index = slice.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid);
    const wanted = index < 0 ? null : this.#places.wanted(slice, index);
    const groups = this.#options.groups.known(slice);
    if (wanted === null || wanted.hardBytes === null || groups.length === 0) return false;
    return groups.every((group) => isSame(this.#setter?.known(group, gpuUuid), wanted));
  }

  /** In words, that somebody else changed a limit of a slice lately; null if nobody did. */
  changed(allocation: string): string | null {
    return this.#changes.of(allocation);
  }

  /** Whether another program changes limits of this node's slices again and again. */
  get hasDispute(): boolean {
    return this.#changes.hasDispute;
  }

  /**
   * A container of the slice starts soon: its control group does not exist yet, but that of its pod does. Resolves when
   * that has the limits of the pod; never rejects.
   */
  async expect(allocation: string): Promise<void> {
    const slice = this.#options.slices.started.get(allocation);
    if (slice === undefined || this.#isIdle) return;
    this.#searches.begin(allocation);
    await this.#inTime(this.#update(slice, false));
  }

  /** A container of the slice exists, and its program waits until this resolves; it never rejects. */
  async starting(allocation: string): Promise<void> {
    const slice = this.#options.slices.started.get(allocation);
    if (slice === undefined || this.#isIdle) return;
    await this.#inTime(this.#update(slice, false).then(() => slice.limits.leaveMemory(this.#mayLeaveMemory(slice))));
  }

  /** The limits of a running container have changed, or it was suspended or resumed. */
  follow(slice: Slice): void {
    if (!this.#isIdle) void this.#update(slice, false);
  }

  /** A process that is said to be in a container of the slice, and did not greet. */
  seen(allocation: string, pid: number): void {
    const slice = this.#options.slices.started.get(allocation);
    if (slice === undefined || this.#isIdle) return;
    this.#options.groups.seen(slice, pid);
    if (this.#isNew(slice)) void this.#update(slice, false);
  }

  /** True on a node whose driver has no memory limits. */
  get #isIdle(): boolean {
    return this.#setter === null || !this.#options.enforcement.hasLimits;
  }

  async #inTime(update: Promise<void>): Promise<void> {
    let cancel: () => void = () => undefined;
    const late = new Promise<void>((resolve) => (cancel = this.#options.clock.after(START_MS, resolve)));
    await Promise.race([update, late]);
    cancel();
  }

  /** Whether a limit of the slice is neither set nor known to be set. */
  #isNew(slice: Slice): boolean {
    if (this.#isIdle) return false;
    return this.#options.groups
      .of(slice)
      .some((group) =>
        slice.spec.devices.some(
          ({ uuid }, index) =>
            this.#places.wanted(slice, index) !== null && this.#setter?.known(group, uuid) === undefined,
        ),
      );
  }

  /**
   * Whether the control library may leave the memory of the slice to the driver: not where it does more than to count,
   * and not while another program changes the limits.
   */
  #mayLeaveMemory(slice: Slice): boolean {
    return (
      this.#options.groups.isOfOneContainer(slice) &&
      !this.#changes.areDisputed(slice.id) &&
      slice.limits.live.every(({ hostBackedBytes = 0 }) => hostBackedBytes === 0) &&
      slice.spec.devices.every(({ uuid }) => this.enforces(slice, uuid))
    );
  }

  /** A process may have greeted whose control group was not known, or the last one may have left. */
  #lookSoon(): void {
    if (this.#isIdle) return;
    this.#cancelLook ??= this.#options.clock.after(LOOK_MS, () => {
      this.#cancelLook = null;
      const { slices, groups } = this.#options;
      for (const slice of slices.started.values()) {
        const isKnown = groups.known(slice).length > 0;
        if (!isKnown && this.#isNew(slice)) void this.#update(slice, false);
        // The next container of this slice may start where no runtime waits for the agent.
        if (slice.limits.memoryByDriver && isKnown && groups.of(slice).length === 0) slice.limits.leaveMemory(false);
      }
    });
  }

  async #examine(): Promise<void> {
    const { enforcement, log } = this.#options;
    for (const [gpu, enforcer] of await enforcement.examine()) {
      if (enforcer.by === 'driver') log.info({ gpu, ...enforcer }, 'the driver enforces memory limits on this GPU');
      else if (enforcer.reason !== null)
        log.warn({ gpu, reason: enforcer.reason }, 'the control library alone enforces memory limits on this GPU');
    }
  }

  /** Whether the group of a container that is about to start is known now. */
  async #lookFor(allocation: string): Promise<boolean> {
    const { slices, groups } = this.#options;
    const slice = slices.started.get(allocation);
    if (slice === undefined) return true;
    if (groups.of(slice).length === 0) await groups.ask(slice);
    await this.#update(slice, false);
    return groups.of(slice).length > 0;
  }

  async #compareAll(): Promise<void> {
    const { slices, groups } = this.#options;
    await this.#examine();
    if (this.#isIdle) return;
    groups.keepOnly(slices.started);
    this.#changes.keepOnly(slices.started);
    for (const id of this.#failures.keys()) if (!slices.started.has(id)) this.#failures.delete(id);
    for (const slice of slices.started.values()) {
      if (groups.of(slice).length === 0 && !this.#searches.isActive(slice.id)) await groups.ask(slice);
      await this.#update(slice, true);
      if (slice.limits.memoryByDriver && !this.#mayLeaveMemory(slice)) slice.limits.leaveMemory(false);
    }
    this.#setter?.keepOnly([...slices.started.values()].flatMap((slice) => this.#places.of(slice)));
  }

  /** Brings the groups of a slice to its limits; never rejects. With `read` it trusts no earlier call. */
  #update(slice: Slice, read: boolean): Promise<void> {
    const run = this.#updateNow(slice, read)
      .catch((error: unknown) => this.#failed(slice, error))
      .finally(() => this.#running.delete(run));
    this.#running.add(run);
    return run;
  }

  async #updateNow(slice: Slice, read: boolean): Promise<void> {
    const refusals: string[] = [];
    for (const place of this.#setter === null ? [] : this.#places.of(slice)) {
      const done = await this.#setter?.set(place, read);
      const wanted = place.wanted();
      if (done === undefined || wanted === null) continue;
      if (done.changedTo !== null) this.#noteChange(slice, done.changedTo, wanted);
      if (typeof done.result === 'object')
        refusals.push(`${wordsOf(wanted)} on ${place.gpuUuid}: ${done.result.refused}`);
    }
    if (refusals.length > 0) this.#failed(slice, new Error([...new Set(refusals)].join('; ')));
    else this.#failures.delete(slice.id);
  }

  #noteChange(slice: Slice, found: GroupLimits, wanted: GroupLimits): void {
    const message = `somebody else changed the memory limit in the driver to ${wordsOf(found)}; the agent set ${wordsOf(wanted)} again`;
    this.#changes.note(slice.id, message);
    this.#options.log.warn({ allocation: slice.id, owner: slice.spec.owner, found, wanted }, message);
  }

  #failed(slice: Slice, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (this.#failures.get(slice.id) === reason) return;
    this.#failures.set(slice.id, reason);
    const { log, notices } = this.#options;
    const message = `the driver does not take the memory limit, so the control library alone enforces it: ${reason}`;
    log.warn({ err: error, allocation: slice.id, owner: slice.spec.owner }, message);
    notices.note(slice.spec.owner, { type: 'Warning', reason: 'GPUDriverLimit', message });
  }
}
