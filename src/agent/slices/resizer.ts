import type { DeviceLimit } from '../../abi/limits-file.js';
import { describeLimit, NO_REQUEST, sameLimits, type LimitRequest } from './live-limits.js';
import type { Log } from '../../host/log.js';
import type { LimitPolicy } from './limit-policy.js';
import type { OperatorLimits } from './operator-limits.js';
import type { PodLimitAnnotations, SliceNotices } from './ports.js';
import type { Slice } from './slice.js';
import type { Slices } from './slices.js';

export interface ResizerOptions {
  readonly slices: Slices;
  readonly policy: LimitPolicy;
  readonly operator: OperatorLimits;
  readonly limitAnnotations: PodLimitAnnotations;
  readonly notices: SliceNotices;
  readonly log: Log;
}

export type Resized =
  | { readonly ok: true; readonly notes: readonly string[] }
  | { readonly ok: false; readonly code: 'unknown' | 'in-use'; readonly reason: string };

const MIB = 2 ** 20;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** Changes the limits of running containers when their pods' annotations change, or when an operator says so. */
export class Resizer {
  readonly #options: ResizerOptions;
  /** The last message about a slice's request, so that it is reported once. */
  readonly #said = new Map<string, string>();
  #unsubscribe: () => void = () => undefined;

  constructor(options: ResizerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#unsubscribe = this.#options.limitAnnotations.onAnnotations((podUid) => {
      for (const slice of this.#options.slices.started.values())
        if (slice.spec.owner.podUid === podUid) this.reconsider(slice);
    });
  }

  stop(): void {
    this.#unsubscribe();
  }

  /**
   * Brings a slice's limits to what they should be now. A memory limit below what is in use is refused, everything else
   * holds at once.
   */
  reconsider(slice: Slice): void {
    const { policy, notices } = this.#options;
    const wanted = policy.wanted(slice.spec);
    if (!wanted.podKnown) return;
    const { devices, refusals } = this.#without(slice, wanted.devices);
    this.#say(slice, [...wanted.notes, ...refusals]);
    if (!this.#apply(slice, devices)) return;
    notices.note(slice.spec.owner, {
      type: 'Normal',
      reason: 'GPULimitChanged',
      message: `${slice.spec.owner.container}: ${describe(devices)}`,
    });
  }

  /** An operator asks for limits of one container; fields that are null stay as they were asked before. */
  async ask(allocation: string, request: LimitRequest): Promise<Resized> {
    const { operator } = this.#options;
    const before = operator.get(allocation) ?? NO_REQUEST;
    const merged: LimitRequest = {
      memoryBytes: request.memoryBytes ?? before.memoryBytes,
      share: request.share ?? before.share,
      softLimit: request.softLimit ?? before.softLimit,
    };
    return this.#operate(allocation, merged);
  }

  /** The operator's limits were removed: limit annotations apply again. */
  async release(allocation: string): Promise<Resized> {
    return this.#operate(allocation, null);
  }

  async #operate(allocation: string, request: LimitRequest | null): Promise<Resized> {
    const { slices, policy, operator } = this.#options;
    const slice = slices.started.get(allocation);
    if (slice === undefined)
      return { ok: false, code: 'unknown', reason: `no container runs in allocation ${allocation}` };
    const wanted = policy.wanted(slice.spec, request ?? NO_REQUEST);
    const { refusals } = this.#without(slice, wanted.devices);
    if (refusals.length > 0) return { ok: false, code: 'in-use', reason: refusals.join('; ') };
    await operator.set(allocation, request);
    this.#apply(slice, wanted.devices);
    return { ok: true, notes: wanted.notes };
  }

  /** The limits without memory limits that the container has outgrown already: those stay as they are. */
  #without(
    slice: Slice,
    wanted: readonly DeviceLimit[],
  ): { readonly devices: DeviceLimit[]; readonly refusals: string[] } {
    const refusals: string[] = [];
    const devices = wanted.map((limit, index): DeviceLimit => {
      const live = slice.limits.live[index];
      const asked = limit.memoryBytes ?? UNLIMITED;
      if (live === undefined || asked >= (live.memoryBytes ?? UNLIMITED)) return limit;
      const held = slice.held(index);
      const used = held === null ? null : held + live.driverOverheadBytes;
      if (used !== null && used <= asked) return limit;
      const use = used === null ? 'its use cannot be read' : `${Math.ceil(used / MIB)} MiB are in use`;
      const stays = live.memoryBytes === null ? 'all memory' : `${Math.floor(live.memoryBytes / MIB)} MiB`;
      refusals.push(
        `${slice.spec.owner.container}: a memory limit of ${Math.floor(asked / MIB)} MiB is not set, ${use}; it stays ${stays}`,
      );
      return { ...limit, memoryBytes: live.memoryBytes };
    });
    return { devices, refusals };
  }

  /** False when nothing changed. */
  #apply(slice: Slice, devices: readonly DeviceLimit[]): boolean {
    if (sameLimits(devices, slice.limits.live)) return false;
    slice.resize(devices);
    this.#options.log.info(
      { allocation: slice.id, owner: slice.spec.owner, limits: describe(devices) },
      'limits of a running container changed',
    );
    return true;
  }

  #say(slice: Slice, sentences: readonly string[]): void {
    const text = sentences.join('; ');
    const before = this.#said.get(slice.id) ?? '';
    if (text === before) return;
    if (text === '') this.#said.delete(slice.id);
    else this.#said.set(slice.id, text);
    for (const id of this.#said.keys()) if (!this.#options.slices.started.has(id)) this.#said.delete(id);
    if (text === '') return;
    this.#options.log.warn(
      { allocation: slice.id, owner: slice.spec.owner, reason: text },
      'a requested limit was refused',
    );
    this.#options.notices.note(slice.spec.owner, { type: 'Warning', reason: 'GPULimitRefused', message: text });
  }
}

function describe(devices: readonly DeviceLimit[]): string {
  return devices.map(describeLimit).join('; ');
}
