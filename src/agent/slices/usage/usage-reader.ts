import { constants, closeSync, fstatSync, ftruncateSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import {
  CALL_MARKS,
  decodeCallMarks,
  decodeDeviceUsage,
  decodeSlots,
  decodeUsage,
  deviceRange,
  holderWords,
  ledgerRange,
  refuseUsage,
  slotsRange,
  sumHostBacked,
  sumLedger,
  sumObjects,
  type CallMarks,
  type DeviceUsage,
  type ProcessSlot,
  type UsageDecoded,
  type UsageRefusal,
} from '../../../abi/usage-file.js';
import { DEVICE_USAGE, MAX_PROCESSES, USAGE_HEADER, USAGE_LAYOUT } from '../../../abi/vgpu-abi.js';
import { BLOCK_BYTES } from './activity-files.js';

/** Linux's O_PATH of open(2), which Node does not export: opens a path without opening the file itself. */
const O_PATH = 0o10000000;

export type UsageProblemCode = 'missing' | 'not-a-file' | 'unreadable' | 'replaced' | 'truncated' | 'grown' | 'held';

/** A problem of the usage file as a file, which only the container's processes can have caused. */
export interface UsageProblem {
  readonly code: UsageProblemCode;
  readonly reason: string;
}

export type UsageOpened = { readonly ok: true; readonly reader: UsageReader } | ({ readonly ok: false } & UsageProblem);

/** The space that a file of this size may take: file systems round up and add metadata. */
const MAX_BYTES = 2 * USAGE_LAYOUT.structSize + 2 ** 20;

const whole = Buffer.alloc(USAGE_LAYOUT.structSize);
const part = Buffer.alloc(DEVICE_USAGE.structSize);
const word = Buffer.alloc(4);
const highs = Buffer.alloc(USAGE_HEADER.objectHigh + 4 - USAGE_HEADER.slotHigh);
const marks = Buffer.alloc(CALL_MARKS.length);
const head = Buffer.alloc(USAGE_HEADER.structSize);
const slots = Buffer.alloc(slotsRange(MAX_PROCESSES).length);
const ledger = Buffer.alloc(ledgerRange(0, MAX_PROCESSES).length);
const holders = Array.from({ length: holderWords(MAX_PROCESSES) }, () => Buffer.alloc(ledger.length));

interface Opened {
  readonly fd: number;
  readonly refused: string | null;
}

/**
 * Reopens the file of `fd`, for writing if possible. Never waits: if a container holds a lease on its file or executes
 * it, the call fails and the file is opened read-only until that ends.
 */
function openThrough(fd: number): Opened {
  const path = `/proc/self/fd/${fd}`;
  try {
    return { fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK), refused: null };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const refused =
      code === 'EAGAIN' ? 'it is leased' : code === 'ETXTBSY' ? 'it is being executed' : (error as Error).message;
    return { fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), refused };
  }
}

/**
 * Reads the usage file of one container. The container can write it, so the agent does not map it (shortening a mapped
 * file kills its reader) and does not trust it to be a file: it is opened without following links and without side
 * effects of other file types. Reads come from the page cache and take about a microsecond, so they are synchronous.
 */
export class UsageReader {
  readonly #path: string;
  #fd: number | null;
  /** Whether the descriptor can write. While it can, no process can take a lease on the file or execute it. */
  #writable: boolean;
  /** Why it cannot write. */
  #refused: string | null;
  readonly #identity: Stats;
  /** Slots and shared objects that were in use at the last count. */
  #slotHigh = 0;
  #objectHigh = 0;

  private constructor(path: string, opened: Opened, identity: Stats) {
    this.#path = path;
    this.#fd = opened.fd;
    this.#writable = opened.refused === null;
    this.#refused = opened.refused;
    this.#identity = identity;
  }

  static open(path: string): UsageOpened {
    let found: number;
    try {
      found = openSync(path, O_PATH | constants.O_NOFOLLOW);
    } catch (error) {
      return { ok: false, code: 'missing', reason: (error as Error).message };
    }
    try {
      const identity = fstatSync(found);
      if (!identity.isFile()) return { ok: false, code: 'not-a-file', reason: `${path} is not a file` };
      return { ok: true, reader: new UsageReader(path, openThrough(found), identity) };
    } catch (error) {
      return { ok: false, code: 'unreadable', reason: (error as Error).message };
    } finally {
      closeSync(found);
    }
  }

  /** Counters of the i-th GPU of the limits; null if the file is too short. */
  device(index: number): DeviceUsage | null {
    const bytes = this.deviceBytes(index);
    return bytes === null ? null : decodeDeviceUsage(bytes);
  }

  /** The same bytes, undecoded. The buffer is shared by all readers and valid until the next read of any of them. */
  deviceBytes(index: number): Buffer | null {
    return this.#read(part, part.length, deviceRange(index).position) ? part : null;
  }

  /**
   * Bytes that all processes except those in the slots of `without` hold on the i-th GPU; null if the file is too
   * short.
   */
  held(index: number, without?: ReadonlySet<number>): number | null {
    if (!this.#read(highs, highs.length, USAGE_HEADER.slotHigh)) return null;
    this.#slotHigh = highs.readUInt32LE(0);
    this.#objectHigh = highs.readUInt32LE(USAGE_HEADER.objectHigh - USAGE_HEADER.slotHigh);
    return this.heldByKnown(index, without);
  }

  /** Like `held`, with one read less: only for the slots that were in use when `held` was last called. */
  heldByKnown(index: number, without?: ReadonlySet<number>): number | null {
    const { position, length } = ledgerRange(index, this.#slotHigh);
    if (!this.#read(ledger, length, position)) return null;
    const own = sumLedger(ledger.subarray(0, length), without);
    if (this.#objectHigh === 0) return own;
    const shared = this.#shared(index, without);
    return shared === null ? null : Math.min(own + shared, Number.MAX_SAFE_INTEGER);
  }

  #shared(index: number, without?: ReadonlySet<number>): number | null {
    const { position, length } = slotsRange(this.#objectHigh);
    if (!this.#read(slots, length, position)) return null;
    const words: Buffer[] = [];
    for (const [word, entries] of holders.slice(0, holderWords(this.#slotHigh)).entries()) {
      const range = ledgerRange(word, this.#objectHigh);
      if (!this.#read(entries, range.length, range.position)) return null;
      words.push(entries.subarray(0, range.length));
    }
    return sumObjects(slots.subarray(0, length), words, index, without);
  }

  /** Bytes that all processes but those in the slots of `without` hold beyond the memory limit, on the host. */
  hostBacked(without?: ReadonlySet<number>): number | null {
    if (!this.#read(word, word.length, USAGE_HEADER.slotHigh)) return null;
    const { position, length } = slotsRange(word.readUInt32LE(0));
    return this.#read(slots, length, position) ? sumHostBacked(slots.subarray(0, length), without) : null;
  }

  /** The processes that the container's slots name; null if the file is too short. */
  processes(): readonly ProcessSlot[] | null {
    if (!this.#read(word, word.length, USAGE_HEADER.slotHigh)) return null;
    const { position, length } = slotsRange(word.readUInt32LE(0));
    return this.#read(slots, length, position) ? decodeSlots(slots.subarray(0, length)) : null;
  }

  /** What calls tell the agent; null if the file is too short. */
  calls(): CallMarks | null {
    return this.#read(marks, marks.length, CALL_MARKS.position) ? decodeCallMarks(marks) : null;
  }

  /** The problem of the file's header, or null. */
  malformed(): UsageRefusal | null {
    const length = this.#fd === null ? 0 : readSync(this.#fd, head, 0, head.length, 0);
    return refuseUsage(head.subarray(0, length), head.length);
  }

  /** The whole file: processes and the memory that each holds. About 0.3 MB, so not for every tick. */
  all(): UsageDecoded {
    const length = this.#fd === null ? 0 : readSync(this.#fd, whole, 0, whole.length, 0);
    return decodeUsage(whole.subarray(0, length));
  }

  /** A problem that the container caused, or null. */
  problem(): UsageProblem | null {
    let there: Stats;
    try {
      there = lstatSync(this.#path);
    } catch (error) {
      return { code: 'missing', reason: (error as Error).message };
    }
    if (there.ino !== this.#identity.ino || there.dev !== this.#identity.dev)
      return { code: 'replaced', reason: 'another file is in its place' };
    if (there.size < USAGE_LAYOUT.structSize)
      return { code: 'truncated', reason: `${there.size} bytes instead of ${USAGE_LAYOUT.structSize}` };
    if (there.size > USAGE_LAYOUT.structSize)
      return { code: 'grown', reason: `${there.size} bytes instead of ${USAGE_LAYOUT.structSize}` };
    if (!this.#writable) this.#reopen();
    return this.#refused === null ? null : { code: 'held', reason: this.#refused };
  }

  /**
   * Frees the disk space that the file takes beyond its size, and says how much that was; null if there was none. Takes
   * a microsecond.
   */
  cut(): string | null {
    if (this.#fd === null) return null;
    const { size, blocks } = fstatSync(this.#fd);
    // A file can take disk space behind its end.
    if (size <= USAGE_LAYOUT.structSize && blocks * BLOCK_BYTES <= MAX_BYTES) return null;
    const found = `it used ${Math.max(size, blocks * BLOCK_BYTES)} bytes instead of ${USAGE_LAYOUT.structSize}`;
    try {
      if (!this.#writable) this.#reopen();
      // Blocks may lie beyond the end of the file; only a change of its size frees them.
      ftruncateSync(this.#fd, USAGE_LAYOUT.structSize + 1);
      ftruncateSync(this.#fd, USAGE_LAYOUT.structSize);
      return found;
    } catch (error) {
      return `${found}, and it cannot be cut: ${(error as Error).message}`;
    }
  }

  #reopen(): void {
    if (this.#fd === null) return;
    try {
      const opened = openThrough(this.#fd);
      closeSync(this.#fd);
      this.#fd = opened.fd;
      this.#writable = opened.refused === null;
      this.#refused = opened.refused;
    } catch (error) {
      this.#refused = (error as Error).message;
    }
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  /** False if the file is too short or closed. */
  #read(into: Buffer, length: number, position: number): boolean {
    return this.#fd !== null && readSync(this.#fd, into, 0, length, position) === length;
  }
}
