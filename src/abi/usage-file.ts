/**
 * `vgpu.usage`: memory and counters of a container's processes, which share the file through a mapping; the agent reads
 * it. Any process may write anything into it, so only its shape is trusted: numbers saturate, counts are capped, text
 * is truncated. `native/include/vgpu_abi.h` is the definition; its numbers are in `vgpu-abi.ts`.
 */
import {
  ABI_VERSION,
  DENIED_API,
  DEVICE_USAGE,
  LEDGER_ENTRY,
  MAX_DEVICES,
  MAX_PROCESSES,
  OBSTACLE,
  PROCESS_SLOT,
  SELF_TEST,
  SHARED_OBJECT,
  SLOT_START_BITS,
  SLOT_STATE,
  TEXT_BYTES,
  USAGE_HEADER,
  USAGE_LAYOUT,
  USAGE_MAGIC,
} from './vgpu-abi.js';

const HOLDERS_IN_WORD = 64;

const LEDGER_DEVICE_BYTES = MAX_PROCESSES * LEDGER_ENTRY.structSize;

/** Kinds of call that were refused memory. */
export const DENIED_APIS = (Object.keys(DENIED_API) as (keyof typeof DENIED_API)[]).filter((api) => api !== 'kinds');
export type DeniedApi = (typeof DENIED_APIS)[number];

export type SelfTest = Readonly<Record<keyof typeof SELF_TEST, boolean>>;

/** Counters of one GPU since the container started; index i is the i-th GPU of the limits file. */
export interface DeviceUsage {
  /**
   * Time at which the token bucket is level, CLOCK_MONOTONIC in ns; it is in the future while launches are throttled.
   */
  readonly levelAtNs: bigint;
  /**
   * The same for what the container lends and borrows: in the future while it has used more than its own share. 0: it
   * does neither.
   */
  readonly lentAtNs: bigint;
  readonly launches: number;
  /** GPU time charged for launches, before correction. */
  readonly chargedNs: number;
  /** Throttled time of launches, summed over threads. */
  readonly throttledNs: number;
  readonly waits: number;
  /** Launches with a measured time, and their GPU time. */
  readonly samples: number;
  readonly sampledNs: number;
  /** Launches whose charge was estimated because their cost was not known yet. */
  readonly unknownLaunches: number;
  readonly denied: Readonly<Record<DeniedApi, number>>;
  readonly deniedBytes: number;
  /** Most bytes held at once. */
  readonly peakBytes: number;
  /** Bytes that were reclaimed from processes that died. */
  readonly reclaimedBytes: number;
}

/** The counters that steering reads in every tick. */
export type PaceUsage = Pick<
  DeviceUsage,
  'levelAtNs' | 'lentAtNs' | 'launches' | 'chargedNs' | 'throttledNs' | 'waits' | 'unknownLaunches'
>;

/** What the driver cannot checkpoint. */
export type Obstacle = keyof typeof OBSTACLE;
const OBSTACLES = Object.keys(OBSTACLE) as Obstacle[];

/** What calls tell the agent without a message. */
export interface CallMarks {
  /** When a launch, copy or allocation last saw newly published limits, CLOCK_MONOTONIC in ns; 0: never. */
  readonly workedAtNs: bigint;
  /** How many calls found the container suspended. */
  readonly asked: bigint;
}

/** Position and length of the bytes of `decodeCallMarks` in the file. */
export const CALL_MARKS: FileRange = { position: USAGE_HEADER.workedAtNs, length: 16 };

export function decodeCallMarks(bytes: Buffer): CallMarks {
  return {
    workedAtNs: bytes.readBigUInt64LE(0),
    asked: bytes.readBigUInt64LE(USAGE_HEADER.asked - USAGE_HEADER.workedAtNs),
  };
}

/** Start times of processes are kept modulo this. */
export const PROCESS_START_MODULUS = 2 ** SLOT_START_BITS;

/** One process in its own words. */
export interface ProcessSlot {
  /** Index of its slot in the file, which its greeting on `vcuda.sock` names. */
  readonly slot: number;
  /** Pid in the container. */
  readonly pid: number;
  /** Field 22 of `/proc/<pid>/stat`, modulo 2^40. */
  readonly startTicks: number;
  readonly name: string;
  readonly selfTest: SelfTest;
  /** Number of driver functions with hooked names that the library did not recognise, so that they are not limited. */
  readonly unhooked: number;
  /** Why it cannot be suspended; null if its library is too old to know. */
  readonly obstacles: readonly Obstacle[] | null;
  /** Whether it cannot read what other slices of its GPUs say of their work. */
  readonly hasUnreadLinks: boolean;
}

/** A process with the memory that it holds. */
export interface ProcessUsage extends ProcessSlot {
  /** Bytes held, by GPU of the limits file, including running reservations. */
  readonly heldBytes: readonly number[];
}

export interface Usage {
  readonly devices: readonly DeviceUsage[];
  readonly processes: readonly ProcessUsage[];
  /** By GPU: the sum over all processes, including dead ones that are not reclaimed yet, and their shared memory. */
  readonly heldBytes: readonly number[];
}

export type UsageRefusal = {
  readonly ok: false;
  readonly code: 'truncated' | 'magic' | 'version';
  readonly reason: string;
};
export type UsageDecoded = { readonly ok: true; readonly usage: Usage } | UsageRefusal;
export type UsageSummaryDecoded = { readonly ok: true; readonly devices: readonly DeviceUsage[] } | UsageRefusal;

/** A 64-bit counter as a number; a larger value saturates. */
function readCounter(buffer: Buffer, offset: number): number {
  const value = buffer.readUInt32LE(offset + 4) * 0x1_0000_0000 + buffer.readUInt32LE(offset);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

const saturatingSum = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER);

/** Fields are listed one by one for speed: this runs for every active container ten times a second. */
function readPace(buffer: Buffer, offset: number): PaceUsage {
  return {
    levelAtNs: buffer.readBigUInt64LE(offset + DEVICE_USAGE.levelAtNs),
    lentAtNs: buffer.readBigUInt64LE(offset + DEVICE_USAGE.lentAtNs),
    launches: readCounter(buffer, offset + DEVICE_USAGE.launches),
    chargedNs: readCounter(buffer, offset + DEVICE_USAGE.chargedNs),
    throttledNs: readCounter(buffer, offset + DEVICE_USAGE.throttledNs),
    waits: readCounter(buffer, offset + DEVICE_USAGE.waits),
    unknownLaunches: readCounter(buffer, offset + DEVICE_USAGE.unknownLaunches),
  };
}

function readDevice(buffer: Buffer, offset: number): DeviceUsage {
  const denials = offset + DEVICE_USAGE.denied;
  return {
    ...readPace(buffer, offset),
    samples: readCounter(buffer, offset + DEVICE_USAGE.samples),
    sampledNs: readCounter(buffer, offset + DEVICE_USAGE.sampledNs),
    denied: {
      alloc: readCounter(buffer, denials),
      pitch: readCounter(buffer, denials + 8),
      managed: readCounter(buffer, denials + 16),
      async: readCounter(buffer, denials + 24),
      pool: readCounter(buffer, denials + 32),
      vmm: readCounter(buffer, denials + 40),
      array: readCounter(buffer, denials + 48),
      mipmap: readCounter(buffer, denials + 56),
      graph: readCounter(buffer, denials + 64),
      external: readCounter(buffer, denials + 72),
      context: readCounter(buffer, denials + 80),
    },
    deniedBytes: readCounter(buffer, offset + DEVICE_USAGE.deniedBytes),
    peakBytes: readCounter(buffer, offset + DEVICE_USAGE.peakBytes),
    reclaimedBytes: readCounter(buffer, offset + DEVICE_USAGE.reclaimedBytes),
  };
}

/**
 * Reads the counters of one GPU from its `DEVICE_USAGE.structSize` bytes, which begin at `USAGE_LAYOUT.devices` for the
 * first.
 */
export function decodeDeviceUsage(bytes: Buffer): DeviceUsage {
  return readDevice(bytes, 0);
}

/** The same for `PaceUsage`. */
export function decodePaceUsage(bytes: Buffer): PaceUsage {
  return readPace(bytes, 0);
}

/** A part of the file. */
export interface FileRange {
  readonly position: number;
  readonly length: number;
}

/** The counters of one GPU in the file. */
export function deviceRange(device: number): FileRange {
  return { position: USAGE_LAYOUT.devices + device * DEVICE_USAGE.structSize, length: DEVICE_USAGE.structSize };
}

/** Position of one GPU's ledger entries in the file, and the length of the first `slots` of them. */
export function ledgerRange(device: number, slots: number): FileRange {
  return {
    position: USAGE_LAYOUT.ledger + device * LEDGER_DEVICE_BYTES,
    length: Math.min(slots, MAX_PROCESSES) * LEDGER_ENTRY.structSize,
  };
}

/** Sums the bytes of ledger entries, including running reservations; the first entry belongs to slot 0. */
export function sumLedger(entries: Buffer, without: ReadonlySet<number> = new Set()): number {
  let sum = 0;
  for (let offset = 0; offset + LEDGER_ENTRY.structSize <= entries.length; offset += LEDGER_ENTRY.structSize) {
    if (without.has(offset / LEDGER_ENTRY.structSize)) continue;
    sum = saturatingSum(
      sum,
      saturatingSum(
        readCounter(entries, offset + LEDGER_ENTRY.heldBytes),
        readCounter(entries, offset + LEDGER_ENTRY.tentativeBytes),
      ),
    );
  }
  return sum;
}

/** Sums what process slots hold beyond the memory limit, reservations under way included; the first is slot 0. */
export function sumHostBacked(slots: Buffer, without: ReadonlySet<number> = new Set()): number {
  let sum = 0;
  for (let slot = 0; (slot + 1) * PROCESS_SLOT.structSize <= slots.length; slot++) {
    if (without.has(slot)) continue;
    const offset = slot * PROCESS_SLOT.structSize;
    const held = readCounter(slots, offset + PROCESS_SLOT.hostBackedBytes);
    sum = saturatingSum(sum, saturatingSum(held, readCounter(slots, offset + PROCESS_SLOT.hostBackedTentativeBytes)));
  }
  return sum;
}

/** Number of holder words to read if that many slots were ever used. */
export function holderWords(slotHigh: number): number {
  return Math.ceil(Math.min(slotHigh, MAX_PROCESSES) / HOLDERS_IN_WORD);
}

/**
 * Sums the shared memory on one GPU that a process holds or a descriptor may keep. `slots` are process slots from the
 * first on; `holders[d]` are as many ledger entries of the d-th GPU.
 */
export function sumObjects(
  slots: Buffer,
  holders: readonly Buffer[],
  device: number,
  without: ReadonlySet<number> = new Set(),
): number {
  const dead = holders.map((_, word) => deadMask(word, without));
  let sum = 0;
  for (let object = 0; (object + 1) * PROCESS_SLOT.structSize <= slots.length; object++) {
    const offset = object * PROCESS_SLOT.structSize + PROCESS_SLOT.object;
    if (slots.readUInt32LE(offset + SHARED_OBJECT.device) !== device) continue;
    const position = object * LEDGER_ENTRY.structSize + LEDGER_ENTRY.objectHolders;
    const held = holders.some((entries, word) => (entries.readBigUInt64LE(position) & ~(dead[word] ?? 0n)) !== 0n);
    if (held || slots.readUInt32LE(offset + SHARED_OBJECT.descriptors) !== 0)
      sum = saturatingSum(sum, readCounter(slots, offset + SHARED_OBJECT.bytes));
  }
  return sum;
}

function deadMask(word: number, without: ReadonlySet<number>): bigint {
  let mask = 0n;
  for (const slot of without)
    if (Math.floor(slot / HOLDERS_IN_WORD) === word) mask |= 1n << BigInt(slot % HOLDERS_IN_WORD);
  return mask;
}

function readHeld(buffer: Buffer, device: number, slot: number): number {
  const offset = USAGE_LAYOUT.ledger + device * LEDGER_DEVICE_BYTES + slot * LEDGER_ENTRY.structSize;
  return saturatingSum(
    readCounter(buffer, offset + LEDGER_ENTRY.heldBytes),
    readCounter(buffer, offset + LEDGER_ENTRY.tentativeBytes),
  );
}

/** Position of the process slots in the file, and the length of the first `slots` of them. */
export function slotsRange(slots: number): FileRange {
  return { position: USAGE_LAYOUT.slots, length: Math.min(slots, MAX_PROCESSES) * PROCESS_SLOT.structSize };
}

/** Reads process slots from `bytes`, which begin with the first slot; free slots are left out. */
export function decodeSlots(bytes: Buffer): ProcessSlot[] {
  const slots: ProcessSlot[] = [];
  for (let slot = 0; (slot + 1) * PROCESS_SLOT.structSize <= bytes.length; slot += 1) {
    const one = readSlot(bytes, slot * PROCESS_SLOT.structSize, slot);
    if (one !== null) slots.push(one);
  }
  return slots;
}

function readSlot(buffer: Buffer, offset: number, slot: number): ProcessSlot | null {
  const owner = buffer.readBigUInt64LE(offset + PROCESS_SLOT.owner);
  if (Number(owner & 3n) !== SLOT_STATE.live) return null;
  const bits = buffer.readUInt32LE(offset + PROCESS_SLOT.selfTest);
  const name = buffer.subarray(offset + PROCESS_SLOT.name, offset + PROCESS_SLOT.name + TEXT_BYTES.processSlotName);
  const end = name.indexOf(0);
  return {
    slot,
    pid: Number((owner >> 2n) & 0x3f_ffffn),
    startTicks: Number(owner >> 24n),
    // A process chooses its own name, which appears in logs and on the page: only printable ASCII is kept.
    name: name.toString('latin1', 0, end < 0 ? name.length : end).replace(/[^\x20-\x7e]/g, '?'),
    selfTest: {
      driverFound: (bits & SELF_TEST.driverFound) !== 0,
      lookupKnown: (bits & SELF_TEST.lookupKnown) !== 0,
      devicesMatched: (bits & SELF_TEST.devicesMatched) !== 0,
      sessionOpen: (bits & SELF_TEST.sessionOpen) !== 0,
      eventsWork: (bits & SELF_TEST.eventsWork) !== 0,
    },
    unhooked: buffer.readUInt32LE(offset + PROCESS_SLOT.unhooked),
    obstacles:
      buffer.readBigUInt64LE(offset + PROCESS_SLOT.obstaclesOwner) === owner
        ? OBSTACLES.filter((name) => (buffer.readUInt32LE(offset + PROCESS_SLOT.obstacles) & OBSTACLE[name]) !== 0)
        : null,
    hasUnreadLinks: buffer.readUInt32LE(offset + PROCESS_SLOT.linksUnread) !== 0,
  };
}

function readProcess(buffer: Buffer, slot: number): ProcessUsage | null {
  const one = readSlot(buffer, USAGE_LAYOUT.slots + slot * PROCESS_SLOT.structSize, slot);
  return one === null
    ? null
    : { ...one, heldBytes: Array.from({ length: MAX_DEVICES }, (_, device) => readHeld(buffer, device, slot)) };
}

/** Why the first `needed` bytes are not a valid usage file, or null. */
export function refuseUsage(buffer: Buffer, needed: number): UsageRefusal | null {
  if (buffer.length < needed)
    return { ok: false, code: 'truncated', reason: `${buffer.length} bytes instead of ${needed}` };
  if (buffer.readBigUInt64LE(USAGE_HEADER.magic) !== USAGE_MAGIC)
    return { ok: false, code: 'magic', reason: 'not a usage file' };
  const version = buffer.readUInt32LE(USAGE_HEADER.version);
  if (version !== ABI_VERSION)
    return { ok: false, code: 'version', reason: `version ${version} instead of ${ABI_VERSION}` };
  return null;
}

/**
 * An unused usage file. The agent creates it before the container starts; every process of the container must be able
 * to write it.
 */
export function encodeUsage(): Buffer {
  const buffer = Buffer.alloc(USAGE_LAYOUT.structSize);
  buffer.writeBigUInt64LE(USAGE_MAGIC, USAGE_HEADER.magic);
  buffer.writeUInt32LE(ABI_VERSION, USAGE_HEADER.version);
  buffer.writeUInt32LE(buffer.length, USAGE_HEADER.size);
  buffer.writeUInt32LE(MAX_DEVICES, USAGE_HEADER.deviceCount);
  buffer.writeUInt32LE(MAX_PROCESSES, USAGE_HEADER.slotCount);
  return buffer;
}

/** Reads only the counters, from the first `USAGE_LAYOUT.slots` bytes: the steering loop reads them in every tick. */
export function decodeUsageSummary(buffer: Buffer): UsageSummaryDecoded {
  const refused = refuseUsage(buffer, USAGE_LAYOUT.slots);
  if (refused !== null) return refused;
  const devices = Array.from({ length: MAX_DEVICES }, (_, index) =>
    readDevice(buffer, USAGE_LAYOUT.devices + index * DEVICE_USAGE.structSize),
  );
  return { ok: true, devices };
}

/** Reads the whole file: counters, processes and their memory. */
export function decodeUsage(buffer: Buffer): UsageDecoded {
  const refused = refuseUsage(buffer, USAGE_LAYOUT.structSize);
  if (refused !== null) return refused;
  const summary = decodeUsageSummary(buffer);
  if (!summary.ok) return summary;
  const slots = Math.min(buffer.readUInt32LE(USAGE_HEADER.slotHigh), MAX_PROCESSES);
  const processes: ProcessUsage[] = [];
  const heldBytes = new Array<number>(MAX_DEVICES).fill(0);
  for (let slot = 0; slot < slots; slot++) {
    const one = readProcess(buffer, slot);
    if (one !== null) processes.push(one);
    for (let device = 0; device < MAX_DEVICES; device++) {
      heldBytes[device] = saturatingSum(heldBytes[device] ?? 0, readHeld(buffer, device, slot));
    }
  }
  const objects = Math.min(buffer.readUInt32LE(USAGE_HEADER.objectHigh), MAX_PROCESSES);
  if (objects > 0) {
    const shared = slotsRange(objects);
    const holders = Array.from({ length: holderWords(slots) }, (_, word) => ledgerRange(word, objects));
    const part = ({ position, length }: FileRange): Buffer => buffer.subarray(position, position + length);
    heldBytes.forEach((held, device) => {
      heldBytes[device] = saturatingSum(held, sumObjects(part(shared), holders.map(part), device));
    });
  }
  return { ok: true, usage: { devices: summary.devices, processes, heldBytes } };
}
