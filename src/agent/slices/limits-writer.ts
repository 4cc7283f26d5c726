import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import {
  decodeLimits,
  encodeLimits,
  publishLive,
  type LiveLimit,
  type Limits,
  type NewLimits,
} from '../../abi/limits-file.js';
import { writeFileAtomically } from '../../host/atomic-file.js';

/**
 * The only writer of one limits file. Changes are published in place, so that processes which mapped the file see them
 * at their next launch or allocation.
 */
export class LimitsWriter {
  #fd: number | null;
  readonly #identity: Pick<Limits, 'allocation' | 'devices'>;
  #sequence: number;
  #live: readonly LiveLimit[];

  private constructor(fd: number, limits: Limits) {
    this.#fd = fd;
    this.#identity = limits;
    this.#sequence = limits.sequence;
    this.#live = limits.devices;
  }

  /** Writes a new file in place of whatever was there. Processes that mapped the old one keep seeing that. */
  static async create(path: string, limits: NewLimits): Promise<LimitsWriter> {
    await writeFileAtomically(path, encodeLimits(limits), { mode: 0o644, durable: false });
    const writer = LimitsWriter.open(path);
    if (writer === null) throw new Error(`${path} is not the limits file that was just written`);
    return writer;
  }

  /** Takes over a file that an earlier life of the agent wrote; null when there is none that can be read. */
  static open(path: string): LimitsWriter | null {
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
    } catch (error) {
      if (['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
      throw error;
    }
    const decoded = decodeLimits(readFileSync(fd));
    if (decoded.ok) return new LimitsWriter(fd, decoded.limits);
    closeSync(fd);
    return null;
  }

  /** True when the file is of this allocation and lists these GPUs in this order. */
  lists(allocation: string, uuids: readonly string[]): boolean {
    const { devices } = this.#identity;
    return (
      this.#identity.allocation === allocation &&
      devices.length === uuids.length &&
      devices.every(({ uuid }, index) => uuid === uuids[index])
    );
  }

  /** What is published now; position i is the i-th GPU. */
  get live(): readonly LiveLimit[] {
    return this.#live;
  }

  /** Publishes `live` to every process of the container. Takes a few microseconds; does nothing after close. */
  publish(live: readonly LiveLimit[]): void {
    if (this.#fd === null) return;
    const { writes, sequence } = publishLive(this.#sequence, live);
    for (const { position, bytes } of writes) writeSync(this.#fd, bytes, 0, bytes.length, position);
    this.#sequence = sequence;
    this.#live = live;
  }

  /** Publishes a change of one GPU's part; position as in the file. */
  change(index: number, change: Partial<LiveLimit>): void {
    this.publish(this.#live.map((live, at) => (at === index ? { ...live, ...change } : live)));
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}
