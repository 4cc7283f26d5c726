import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { Rounds } from '../../../host/rounds.js';
import type { GroupLimiter, GroupLimits } from '../../gpus/index.js';
import type { SliceNotices } from '../ports.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import type { GpuEnforcement, MemoryEnforcer } from './gpu-enforcement.js';
import type { SliceGroups } from './slice-groups.js';

export interface DriverMemoryOptions {
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
/** When the runtime is asked for a container that is about to start, after its start was prepared. */
const ASK_AFTER_MS: readonly number[] = [100, 200, 400, 800, 1_600, 3_200];
/** Greetings that come together are looked at together. */
const LOOK_MS = 20;
/** A runtime waits this long at most until a container may start; NRI gives a plugin two seconds. */
const START_MS = 1_000;
/** How long the audit reports a limit that somebody changed. */
const CHANGED_MS = 60_000;

const NO_LIMITS: GroupLimits = { softBytes: 0, hardBytes: null };

/**
 * Memory limits of slices in the driver: sets them in the control groups of the containers, follows their changes, and
 * reads them back. Keeps nothing on disk: after a restart of the agent the groups are found again.
 */
export class DriverMemory {
  readonly #options: DriverMemoryOptions;
  /** The limits that a group has on a GPU, as far as this run of the agent set or read them. */
  readonly #set = new Map<string, GroupLimits>();
  readonly #changed = new Map<string, { readonly message: string; readonly atMs: number }>();
  readonly #running = new Map<string, Promise<void>>();
  /** The last logged failure of each slice. */
  readonly #failures = new Map<string, string>();
  readonly #searches = new Map<string, () => void>();
  readonly #rounds: Rounds;
  #unsubscribe: () => void = () => undefined;
  #cancelLook: (() => void) | null = null;

  constructor(options: DriverMemoryOptions) {
    this.#options = options;
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
    for (const cancel of this.#searches.values()) cancel();
    await this.#rounds.stop();
    await Promise.all(this.#running.values());
  }

  /** What enforces memory limits on a GPU. */
  of(gpuUuid: string): MemoryEnforcer {
    return this.#options.enforcement.of(gpuUuid);
  }

  /** Whether the driver enforces the limit of a slice on a GPU now, in every container of it that is known. */
  enforces(slice: Slice, gpuUuid: string): boolean {
    const index = slice.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid);
    const wanted = index < 0 ? null : this.#wanted(slice, index);
    const groups = this.#options.groups.known(slice);
    if (wanted === null || wanted.hardBytes === null || groups.length === 0) return false;
    return groups.every((group) => isSame(this.#set.get(keyOf(group, gpuUuid)), wanted));
  }

  /** In words, that somebody else changed a limit of a slice lately; null if nobody did. */
  changed(allocation: string): string | null {
    const changed = this.#changed.get(allocation);
    return changed === undefined || this.#options.clock.now() - changed.atMs > CHANGED_MS ? null : changed.message;
  }

  /** A container of the slice starts soon: its control group does not exist yet. */
  expect(allocation: string): void {
    if (this.#isIdle) return;
    this.#searches.get(allocation)?.();
    this.#search(allocation, 0);
  }

  /** A container of the slice exists, and its program waits until this resolves; it never rejects. */
  async starting(allocation: string): Promise<void> {
    const slice = this.#options.slices.started.get(allocation);
    if (slice === undefined || this.#isIdle) return;
    let cancel: () => void = () => undefined;
    const late = new Promise<void>((resolve) => (cancel = this.#options.clock.after(START_MS, resolve)));
    await Promise.race([this.#update(slice, false), late]);
    cancel();
  }

  /** The limits of a running container have changed. */
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
    return this.#options.limiter === null || !this.#options.enforcement.hasLimits;
  }

  /** Whether a limit of the slice is neither set nor known to be set. */
  #isNew(slice: Slice): boolean {
    if (this.#isIdle) return false;
    return this.#options.groups
      .of(slice)
      .some((group) =>
        slice.spec.devices.some(
          ({ uuid }, index) => this.#wanted(slice, index) !== null && !this.#set.has(keyOf(group, uuid)),
        ),
      );
  }

  /** The limits that a group of the slice should have on its GPU; null: it is not for the driver to say. */
  #wanted(slice: Slice, index: number): GroupLimits | null {
    const enforcer = this.of(slice.spec.devices[index]?.uuid ?? '');
    if (enforcer.by === 'library') return enforcer.mayHaveLimits === true ? NO_LIMITS : null;
    const hardBytes = slice.unenforced ? null : (slice.limits.live[index]?.memoryBytes ?? null);
    // With dmem a soft limit stays in the groups above when the group goes: docs/design/driver-limits.md.
    return hardBytes === null ? NO_LIMITS : { hardBytes, softBytes: enforcer.backend === 'dmem' ? 0 : hardBytes };
  }

  /** A process may have greeted whose control group was not known. */
  #lookSoon(): void {
    if (this.#isIdle) return;
    this.#cancelLook ??= this.#options.clock.after(LOOK_MS, () => {
      this.#cancelLook = null;
      for (const slice of this.#options.slices.started.values())
        if (this.#options.groups.known(slice).length === 0 && this.#isNew(slice)) void this.#update(slice, false);
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

  #search(allocation: string, attempt: number): void {
    const { clock, slices, groups } = this.#options;
    const delayMs = ASK_AFTER_MS[attempt];
    if (delayMs === undefined) {
      this.#searches.delete(allocation);
      return;
    }
    const cancel = clock.after(delayMs, () => {
      const slice = slices.started.get(allocation);
      if (slice === undefined || this.#searches.get(allocation) !== cancel) return;
      const done = groups.of(slice).length > 0 ? this.#update(slice, false) : this.#askRuntime(slice);
      void done.then(() => {
        if (this.#searches.get(allocation) !== cancel) return;
        if (groups.of(slice).length > 0) this.#searches.delete(allocation);
        else this.#search(allocation, attempt + 1);
      });
    });
    this.#searches.set(allocation, cancel);
  }

  async #askRuntime(slice: Slice): Promise<void> {
    await this.#options.groups.ask(slice);
    await this.#update(slice, false);
  }

  async #compareAll(): Promise<void> {
    const { slices, groups } = this.#options;
    await this.#examine();
    if (this.#isIdle) return;
    groups.keepOnly(slices.started);
    for (const id of this.#changed.keys()) if (!slices.started.has(id)) this.#changed.delete(id);
    for (const id of this.#failures.keys()) if (!slices.started.has(id)) this.#failures.delete(id);
    const keys = new Set<string>();
    for (const slice of slices.started.values()) {
      if (groups.of(slice).length === 0 && !this.#searches.has(slice.id)) await groups.ask(slice);
      for (const group of groups.of(slice)) for (const { uuid } of slice.spec.devices) keys.add(keyOf(group, uuid));
      await this.#update(slice, true);
    }
    for (const key of this.#set.keys()) if (!keys.has(key)) this.#set.delete(key);
  }

  /** Brings the groups of a slice to its limits, after earlier calls for it. With `read` it trusts no earlier call. */
  #update(slice: Slice, read: boolean): Promise<void> {
    const before = this.#running.get(slice.id) ?? Promise.resolve();
    const run = before
      .then(() => this.#updateNow(slice, read))
      .catch((error: unknown) => this.#failed(slice, error))
      .finally(() => {
        if (this.#running.get(slice.id) === run) this.#running.delete(slice.id);
      });
    this.#running.set(slice.id, run);
    return run;
  }

  async #updateNow(slice: Slice, read: boolean): Promise<void> {
    const { limiter, groups } = this.#options;
    if (limiter === null) return;
    const refusals: string[] = [];
    for (const group of groups.of(slice)) {
      for (const [index, { uuid }] of slice.spec.devices.entries()) {
        const key = keyOf(group, uuid);
        const wanted = this.#wanted(slice, index);
        const known = this.#set.get(key);
        if (wanted === null || (!read && isSame(known, wanted))) continue;
        if (read || known === undefined) {
          const present = await limiter.get(uuid, group);
          if (present === 'gone') continue;
          const limits = present === 'none' ? NO_LIMITS : present;
          if (isSame(limits, wanted)) {
            this.#set.set(key, wanted);
            continue;
          }
          if (isSame(known, wanted)) this.#noteChange(slice, limits, wanted);
        }
        const result = await limiter.set(uuid, group, wanted);
        if (result === 'set') this.#set.set(key, wanted);
        else if (result !== 'gone') refusals.push(`${wordsOf(wanted)} on ${uuid}: ${result.refused}`);
      }
    }
    if (refusals.length > 0) this.#failed(slice, new Error(refusals.join('; ')));
    else this.#failures.delete(slice.id);
  }

  #noteChange(slice: Slice, found: GroupLimits, wanted: GroupLimits): void {
    const message = `somebody else changed the memory limit in the driver to ${wordsOf(found)}; the agent set ${wordsOf(wanted)} again`;
    this.#changed.set(slice.id, { message, atMs: this.#options.clock.now() });
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

function keyOf(group: string, gpuUuid: string): string {
  return `${gpuUuid} ${group}`;
}

function isSame(a: GroupLimits | undefined, b: GroupLimits): boolean {
  return a?.softBytes === b.softBytes && a.hardBytes === b.hardBytes;
}

const MIB = 2 ** 20;

function wordsOf({ hardBytes }: GroupLimits): string {
  return hardBytes === null ? 'no limit' : `${Math.floor(hardBytes / MIB)} MiB`;
}
