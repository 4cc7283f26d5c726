import { closeSync, fstatSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import {
  decodeLimits,
  encodeLimits,
  markSuspended,
  publishLive,
  publishPolicy,
  publishSteering,
  type LiveLimit,
  type Limits,
  type NewLimits,
  type Publication,
  type Steering,
  type SuspendedMark,
} from '../../../abi/limits-file.js';
import { createFileAtomically } from '../../../host/atomic-file.js';
import { isLeased, NEVER_WAIT } from '../../../host/reachable-file.js';

/**
 * The only writer of one limits file. Changes are published in place, so that processes which mapped the file see them
 * at their next launch or allocation.
 */
export class LimitsWriter {
  #fd: number | null;
  readonly #identity: Pick<Limits, 'allocation' | 'devices' | 'denyUnlisted' | 'unenforced' | 'suspendable'>;
  #memoryByDriver: boolean;
  #mark: SuspendedMark;
  #sequence: number;
  #live: readonly LiveLimit[];
  /** The last publication of this object; null before the first. */
  #published: Publication | null = null;

  private constructor(fd: number, limits: Limits) {
    this.#fd = fd;
    this.#identity = limits;
    this.#memoryByDriver = limits.memoryByDriver;
    this.#mark = limits.suspended;
    this.#sequence = limits.sequence;
    this.#live = limits.devices;
  }

  /** Replaces the file by a new one. Processes that mapped the old file keep seeing the old one. */
  static async create(path: string, limits: NewLimits): Promise<LimitsWriter> {
    const content = encodeLimits(limits);
    const file = await createFileAtomically(path, content, { mode: 0o644, durable: false });
    try {
      const decoded = decodeLimits(content);
      if (!decoded.ok) throw new Error(decoded.reason);
      // The descriptor is opened for writing at once, so that no container can take a lease on the file in between.
      return new LimitsWriter(openSync(`/proc/self/fd/${file.fd}`, constants.O_RDWR), decoded.limits);
    } finally {
      await file.close();
    }
  }

  /**
   * Opens a file of an earlier run of the agent; null if it is missing or unreadable, or if its container holds a lease
   * on it or executes it. The caller then creates a new file, and the container's processes keep the limits that they
   * have mapped.
   */
  static open(path: string): LimitsWriter | null {
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR | NEVER_WAIT);
    } catch (error) {
      if (isLeased(error)) return null;
      if (['ENOENT', 'ELOOP', 'ETXTBSY'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
      throw error;
    }
    const decoded = fstatSync(fd).isFile() ? decodeLimits(readFileSync(fd)) : null;
    if (decoded?.ok === true) return new LimitsWriter(fd, decoded.limits);
    closeSync(fd);
    return null;
  }

  /** True when the file belongs to this allocation and lists these GPUs in this order. */
  lists(allocation: string, uuids: readonly string[]): boolean {
    const { devices } = this.#identity;
    return (
      this.#identity.allocation === allocation &&
      devices.length === uuids.length &&
      devices.every(({ uuid }, index) => uuid === uuids[index])
    );
  }

  /** The published limits; entry i is the i-th GPU. */
  get live(): readonly LiveLimit[] {
    return this.#live;
  }

  /** Whether the library passes every call on to the driver; fixed while the container runs. */
  get unenforced(): boolean {
    return this.#identity.unenforced;
  }

  /** Whether the library leaves device memory to the driver, in processes that start from now on. */
  get memoryByDriver(): boolean {
    return this.#memoryByDriver;
  }

  /** Leaves device memory to the driver, or not, in processes that start from now on; does nothing after `close`. */
  leaveMemory(toDriver: boolean): void {
    if (this.#fd === null || this.#memoryByDriver === toDriver) return;
    const { position, bytes } = publishPolicy({ ...this.#identity, memoryByDriver: toDriver });
    writeSync(this.#fd, bytes, 0, bytes.length, position);
    this.#memoryByDriver = toDriver;
  }

  /** Whether calls of the container's programs look if it is suspended; fixed while the container runs. */
  get isSuspendable(): boolean {
    return this.#identity.suspendable;
  }

  /** What calls were told last. */
  get mark(): SuspendedMark {
    return this.#mark;
  }

  /** Tells the next call of every process whether to ask for the GPU. */
  announce(mark: SuspendedMark): void {
    if (this.#fd === null) return;
    const { position, bytes } = markSuspended(mark);
    writeSync(this.#fd, bytes, 0, bytes.length, position);
    this.#mark = mark;
    this.publish(this.#live);
  }

  /** Publishes `live` to every process of the container. Takes a few microseconds; does nothing after `close`. */
  publish(live: readonly LiveLimit[]): void {
    this.#write(publishLive(this.#sequence, live), live);
  }

  /** Publishes a change for one GPU, by its position in the file. */
  change(index: number, change: Partial<LiveLimit>): void {
    this.publish(this.#with(index, change));
  }

  /** Publishes new steering for one GPU, which changes most often. */
  steer(index: number, steering: Steering): void {
    if (this.#published === null) this.change(index, { steering });
    else this.#write(publishSteering(this.#published, index, steering), this.#with(index, { steering }));
  }

  #with(index: number, change: Partial<LiveLimit>): readonly LiveLimit[] {
    return this.#live.map((live, at) => (at === index ? { ...live, ...change } : live));
  }

  #write(publication: Publication, live: readonly LiveLimit[]): void {
    if (this.#fd === null) return;
    // If a write fails, the next publication starts from nothing instead of an incomplete one.
    this.#published = null;
    for (const { position, bytes } of publication.writes) writeSync(this.#fd, bytes, 0, bytes.length, position);
    this.#published = publication;
    this.#sequence = publication.sequence;
    this.#live = live;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}
