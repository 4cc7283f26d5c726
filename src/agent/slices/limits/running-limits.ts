import type { DeviceLimit } from '../../../abi/limits-file.js';
import { describeLimit, holdLimits, NO_REQUEST, requestOf, sameLimits, type LimitRequest } from './live-limits.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { Rounds } from '../../../host/rounds.js';
import type { LimitPolicy } from './limit-policy.js';
import type { OperatorLimits } from './operator-limits.js';
import { NO_SHARING, type PodLimitAnnotations, type SliceNotices, type SliceSharing } from '../ports.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';

export interface RunningLimitsOptions {
  readonly slices: Slices;
  readonly policy: LimitPolicy;
  readonly operator: OperatorLimits;
  readonly limitAnnotations: PodLimitAnnotations;
  /** Absent: each slice belongs to one container. */
  readonly sharing?: SliceSharing;
  readonly notices: SliceNotices;
  /** What the suspended processes of a slice need when they come back; null: it is not suspended. Absent: none is. */
  readonly suspendedBytes?: (allocation: string) => number | null;
  /** Called after the limits of a running container have changed. */
  readonly onChanged?: (slice: Slice) => void;
  readonly clock: Clock;
  readonly log: Log;
}

export type ChangedLimits =
  | { readonly ok: true; readonly notes: readonly string[] }
  | { readonly ok: false; readonly code: 'unknown' | 'in-use' | 'more-than-given'; readonly reason: string };

const MIB = 2 ** 20;
/** Interval in which unreadable files of operator limits are read again. */
const RELOAD_MS = 1_000;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** Changes the limits of running containers when their pods' annotations change or an operator requests it. */
export class RunningLimits {
  readonly #options: RunningLimitsOptions;
  /** The last logged message about a slice's request, so that each is logged once. */
  readonly #logged = new Map<string, string>();
  readonly #rounds: Rounds;
  #unsubscribes: readonly (() => void)[] = [];

  constructor(options: RunningLimitsOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, RELOAD_MS, () => this.#reload());
  }

  start(): void {
    const { limitAnnotations, sharing = NO_SHARING, slices, policy } = this.#options;
    this.#unsubscribes = [
      limitAnnotations.onAnnotations((podUid) => {
        for (const slice of slices.started.values())
          if (policy.usersOf(slice.spec).some((user) => user.podUid === podUid)) this.reconsider(slice);
      }),
      sharing.onChange((id) => {
        const slice = slices.started.get(id);
        if (slice !== undefined) this.reconsider(slice);
      }),
    ];
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#rounds.stop();
  }

  /**
   * Applies the limits that a slice should have now. A memory limit below the memory in use is refused; everything else
   * takes effect at once.
   */
  reconsider(slice: Slice): void {
    const wanted = this.#options.policy.wanted(slice.spec);
    if (!wanted.podKnown) return;
    const { devices, refusals } = this.#without(slice, wanted.devices);
    this.#say(slice, [...wanted.notes, ...refusals]);
    if (this.#apply(slice, devices)) this.#tellChanged(slice, devices);
  }

  /** Applies an operator's limits to one container; null fields keep their earlier values. */
  async ask(allocation: string, request: LimitRequest): Promise<ChangedLimits> {
    const { operator } = this.#options;
    const kept = operator.kept(allocation);
    const before = operator.get(allocation) ?? (kept === null || kept === 'unknown' ? NO_REQUEST : requestOf(kept));
    const merged: LimitRequest = {
      memoryBytes: request.memoryBytes ?? before.memoryBytes,
      share: request.share ?? before.share,
      softLimit: request.softLimit ?? before.softLimit,
    };
    return this.#operate(allocation, merged);
  }

  /** Removes the operator's limits: limit annotations apply again. */
  async release(allocation: string): Promise<ChangedLimits> {
    return this.#operate(allocation, null);
  }

  async #operate(allocation: string, request: LimitRequest | null): Promise<ChangedLimits> {
    const { slices, policy, operator } = this.#options;
    const slice = slices.started.get(allocation);
    if (slice === undefined)
      return { ok: false, code: 'unknown', reason: `no container runs in allocation ${allocation}` };
    const impossible = problemsOf(slice.spec.devices, request ?? NO_REQUEST);
    if (impossible.length > 0) return { ok: false, code: 'more-than-given', reason: impossible.join('; ') };
    const wanted = policy.wantedWith(slice.spec, request);
    const { refusals } = this.#without(slice, wanted.devices);
    if (refusals.length > 0) return { ok: false, code: 'in-use', reason: refusals.join('; ') };
    await operator.set(allocation, request);
    if (this.#apply(slice, wanted.devices))
      this.#tellChanged(slice, wanted.devices, ', set by an operator of the node');
    return { ok: true, notes: wanted.notes };
  }

  /** Unreadable files of operators may have been repaired, and leases on them may have been released. */
  async #reload(): Promise<void> {
    const { operator, policy, slices } = this.#options;
    for (const allocation of operator.unread) {
      await operator.load(allocation);
      const slice = slices.started.get(allocation);
      if (slice === undefined || operator.kept(allocation) !== null) continue;
      this.#apply(slice, this.#without(slice, policy.wanted(slice.spec).devices).devices);
      this.reconsider(slice);
    }
  }

  #tellChanged(slice: Slice, devices: readonly DeviceLimit[], by = ''): void {
    const { notices, policy } = this.#options;
    for (const user of policy.usersOf(slice.spec))
      notices.note(user, {
        type: 'Normal',
        reason: 'GPULimitChanged',
        message: `${user.container}: ${describe(devices)}${by}`,
      });
  }

  /** Why memory limits below these cannot be set: the container uses more; null if they can. */
  inUseBeyond(slice: Slice, limits: readonly Pick<DeviceLimit, 'memoryBytes'>[]): string | null {
    for (const [index, { memoryBytes }] of limits.entries()) {
      const use = this.#useBeyond(slice, index, memoryBytes ?? UNLIMITED);
      if (use !== null) return use;
    }
    return null;
  }

  /** The use of a GPU's memory that forbids a limit of `bytes`; null if that is no lower limit, or it suffices. */
  #useBeyond(slice: Slice, index: number, bytes: number): string | null {
    const live = slice.limits.live[index];
    if (live === undefined || bytes >= (live.memoryBytes ?? UNLIMITED)) return null;
    const held = slice.held(index);
    if (held === null) return 'its use cannot be read';
    const suspended = this.#options.suspendedBytes?.(slice.id) ?? 0;
    const used = Math.max(held + live.driverOverheadBytes, suspended);
    return used <= bytes ? null : `${Math.ceil(used / MIB)} MiB are in use`;
  }

  /** The limits without memory limits that are below the memory in use: those keep their present values. */
  #without(
    slice: Slice,
    wanted: readonly DeviceLimit[],
  ): { readonly devices: DeviceLimit[]; readonly refusals: string[] } {
    const refusals: string[] = [];
    const devices = wanted.map((limit, index): DeviceLimit => {
      const live = slice.limits.live[index];
      const asked = limit.memoryBytes ?? UNLIMITED;
      const use = this.#useBeyond(slice, index, asked);
      if (live === undefined || use === null) return limit;
      const stays = live.memoryBytes === null ? 'all memory' : `${Math.floor(live.memoryBytes / MIB)} MiB`;
      refusals.push(
        `${slice.spec.owner.container}: a memory limit of ${Math.floor(asked / MIB)} MiB is not set, ${use}; it stays ${stays}`,
      );
      return { ...limit, memoryBytes: live.memoryBytes };
    });
    return { devices, refusals };
  }

  /** Returns false if nothing changed. */
  #apply(slice: Slice, devices: readonly DeviceLimit[]): boolean {
    if (sameLimits(devices, slice.limits.live)) return false;
    slice.resize(devices);
    this.#options.onChanged?.(slice);
    this.#options.log.info(
      { allocation: slice.id, owner: slice.spec.owner, limits: describe(devices) },
      'limits of a running container changed',
    );
    return true;
  }

  #say(slice: Slice, sentences: readonly string[]): void {
    const text = sentences.join('; ');
    const before = this.#logged.get(slice.id) ?? '';
    if (text === before) return;
    if (text === '') this.#logged.delete(slice.id);
    else this.#logged.set(slice.id, text);
    for (const id of this.#logged.keys()) if (!this.#options.slices.started.has(id)) this.#logged.delete(id);
    if (text === '') return;
    this.#options.log.warn(
      { allocation: slice.id, owner: slice.spec.owner, reason: text },
      'a requested limit was refused',
    );
    const { notices, policy } = this.#options;
    for (const user of policy.usersOf(slice.spec))
      notices.note(user, { type: 'Warning', reason: 'GPULimitRefused', message: text });
  }
}

/** The parts of an operator's request that are invalid whatever is in use. */
function problemsOf(given: readonly DeviceLimit[], request: LimitRequest): string[] {
  const { devices, notes } = holdLimits(given, request);
  const { softLimit } = request;
  const share = Math.max(...devices.map((device) => device.share));
  if (softLimit === null || softLimit >= share) return [...notes];
  return [...notes, `a soft limit of ${softLimit} is below the share, ${share}: it is at least that`];
}

function describe(devices: readonly DeviceLimit[]): string {
  return devices.map(describeLimit).join('; ');
}
