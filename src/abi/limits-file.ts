/**
 * `vgpu.limits`: the limits of one allocation, written by the agent and mapped read-only by the control library in the
 * container. `native/include/vgpu_abi.h` is the definition; its numbers are in `vgpu-abi.ts`.
 */
import {
  ABI_VERSION,
  DEVICE_IDENTITY,
  DEVICE_LIVE,
  LIMITS_HEADER,
  LIMITS_LAYOUT,
  LIMITS_MAGIC,
  LIVE_FLAGS,
  LOG_LEVEL,
  MAX_DEVICES,
  MAX_HIGH,
  POLICY,
  PPM_WHOLE,
  PRIORITY,
  SUSPENDED,
  TEXT_BYTES,
} from './vgpu-abi.js';

const LIVE_COPY_BYTES = MAX_DEVICES * DEVICE_LIVE.structSize;

export type LogLevel = keyof typeof LOG_LEVEL;

/** Values that the steering loop publishes for one GPU; see `publishLive`. */
export interface Steering {
  /** CLOCK_MONOTONIC in ns (`process.hrtime.bigint()`), from which the control library computes the age. */
  readonly atNs: bigint;
  /**
   * GPU time that the container may use now, between share and soft limit, in parts per million of the GPU; null: the
   * library decides.
   */
  readonly grantPpm: number | null;
  /** Factor on every charge, in parts per million; 1,000,000 changes nothing. */
  readonly correctionPpm: number;
  /** No other container used this GPU lately, so measured launch times are exact. */
  readonly alone: boolean;
  /** Recent use of the GPU by all others, in parts per million of it. */
  readonly othersPpm: number;
}

/** The limits of a container on one GPU. */
export interface DeviceLimit {
  /** Bytes; null: not limited. */
  readonly memoryBytes: number | null;
  /** Cores of the GPU as a hard share; 100: not limited. */
  readonly share: number;
  /** Cores that it may use while other containers leave the GPU idle; null: never more than `share`. */
  readonly softLimit: number | null;
  /** Bytes that it may hold beyond `memoryBytes`, on the host. Absent: none. */
  readonly hostBackedBytes?: number;
  /** Absent: normal. */
  readonly priority?: keyof typeof PRIORITY;
}

/**
 * Published data about the slices to which a slice gives way: for a low slice the high ones of its GPU; for another
 * slice with a soft limit those that get back from it what it uses beyond its share.
 */
export interface GivesWay {
  /** By slice, in the order of the links: the most time, in hundredths, for which this slice gives way to it. */
  readonly believed: readonly number[];
  /** Ten-thousandths of the GPU that this slice gets beside them. */
  readonly floor: number;
}

/** The part of a device's limits that may change while the container runs. */
export interface LiveLimit extends DeviceLimit {
  /** Memory for contexts and modules that the driver uses for the container, in bytes: it counts towards the limit. */
  readonly driverOverheadBytes: number;
  readonly steering: Steering | null;
  /** Absent: it gives way to none. */
  readonly givesWay?: GivesWay;
  /** Number of changes of memory limit, share or soft limit. */
  readonly generation: number;
}

/** Identifies one GPU as the container's driver shows it. */
export interface DeviceIdentity {
  /** `GPU-...` or `MIG-...`, as NVML prints it. */
  readonly uuid: string;
  /** Such as `00000000:3B:00.0`. */
  readonly pciBusId: string;
}

/** One GPU of `NewLimits`. */
export type NewDeviceLimits = DeviceIdentity & DeviceLimit;

/** The content that `encodeLimits` writes. */
export interface NewLimits {
  /** Id of the allocation, used in messages. At most 63 bytes. */
  readonly allocation: string;
  readonly devices: readonly NewDeviceLimits[];
  /** Whether to refuse memory on GPUs that the container can see but that are not listed. Default true. */
  readonly denyUnlisted?: boolean;
  /** The library passes every call on to the driver. Default false. */
  readonly unenforced?: boolean;
  /** Every call looks whether the agent suspends the slice. Default false. */
  readonly suspendable?: boolean;
  /** Level of the library's messages on the application's stderr. Default `error`. */
  readonly logLevel?: LogLevel;
}

/** The content of a limits file. */
export interface Limits {
  readonly allocation: string;
  readonly denyUnlisted: boolean;
  readonly unenforced: boolean;
  /** The library leaves device memory to the driver, in processes that start from now on. */
  readonly memoryByDriver: boolean;
  readonly suspendable: boolean;
  /** What calls do first; see `SuspendedMark`. */
  readonly suspended: SuspendedMark;
  readonly logLevel: LogLevel;
  /** Number of publications so far. */
  readonly sequence: number;
  readonly devices: readonly (DeviceIdentity & LiveLimit)[];
}

export type LimitsDecoded =
  | { readonly ok: true; readonly limits: Limits }
  | { readonly ok: false; readonly code: 'truncated' | 'magic' | 'version' | 'devices'; readonly reason: string };

/** One `pwrite`. */
export interface FileWrite {
  readonly position: number;
  readonly bytes: Buffer;
}

/** The writes of one publication, in order, and the number of publications including it. */
export interface Publication {
  readonly writes: readonly FileWrite[];
  readonly sequence: number;
}

const LOG_LEVELS = Object.keys(LOG_LEVEL) as LogLevel[];

function writeText(buffer: Buffer, offset: number, room: number, text: string, what: string): void {
  if (Buffer.byteLength(text) >= room) throw new RangeError(`${what} is longer than ${room - 1} bytes: ${text}`);
  if (text.includes('\0')) throw new RangeError(`${what} contains a zero byte`);
  buffer.write(text, offset, 'utf8');
}

function readText(buffer: Buffer, offset: number, room: number): string {
  const field = buffer.subarray(offset, offset + room);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? room : end);
}

function checkedBytes(bytes: number, what: string): bigint {
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw new RangeError(`${what} is not a number of bytes: ${bytes}`);
  return BigInt(bytes);
}

function checkedShare(share: number, what: string): number {
  if (!Number.isInteger(share) || share < 1 || share > 100)
    throw new RangeError(`${what} is not within 1..100: ${share}`);
  return share;
}

function writeLive(buffer: Buffer, offset: number, live: LiveLimit): void {
  // In the file 0 means "no limit", so a limit of zero bytes is written as one byte: no allocation fits into it.
  const memory = live.memoryBytes === null ? 0n : checkedBytes(live.memoryBytes, 'memory limit') || 1n;
  buffer.writeBigUInt64LE(memory, offset + DEVICE_LIVE.memoryLimitBytes);
  buffer.writeBigUInt64LE(
    checkedBytes(live.driverOverheadBytes, 'driver overhead'),
    offset + DEVICE_LIVE.driverOverheadBytes,
  );
  buffer.writeUInt32LE(checkedShare(live.share, 'share'), offset + DEVICE_LIVE.share);
  const soft = live.softLimit === null ? 0 : checkedShare(live.softLimit, 'soft limit');
  buffer.writeUInt32LE(soft, offset + DEVICE_LIVE.softLimit);
  buffer.writeUInt32LE(live.generation >>> 0, offset + DEVICE_LIVE.generation);
  buffer.writeBigUInt64LE(
    checkedBytes(live.hostBackedBytes ?? 0, 'host-backed memory'),
    offset + DEVICE_LIVE.hostBackedLimitBytes,
  );
  buffer.writeUInt8(PRIORITY[live.priority ?? 'normal'], offset + DEVICE_LIVE.priority);
  buffer.writeUInt8(live.givesWay?.believed.length ?? 0, offset + DEVICE_LIVE.highCount);
  buffer.writeUInt16LE(live.givesWay?.floor ?? 0, offset + DEVICE_LIVE.lowFloor);
  if (live.steering !== null) writeSteering(buffer, offset, live.steering);
}

function writeSteering(buffer: Buffer, offset: number, steering: Steering): void {
  buffer.writeBigUInt64LE(steering.atNs, offset + DEVICE_LIVE.steeredAtNs);
  buffer.writeUInt32LE(steering.grantPpm ?? 0, offset + DEVICE_LIVE.grantPpm);
  buffer.writeUInt32LE(steering.correctionPpm, offset + DEVICE_LIVE.correctionPpm);
  buffer.writeUInt32LE(steering.alone ? LIVE_FLAGS.alone : 0, offset + DEVICE_LIVE.flags);
  buffer.writeUInt32LE(steering.othersPpm, offset + DEVICE_LIVE.othersPpm);
}

/** The fields of `believed` are not part of a GPU's identity, because its live part had no room for them. */
function believedOf({ givesWay }: LiveLimit): Buffer {
  if ((givesWay?.believed.length ?? 0) > MAX_HIGH)
    throw new RangeError(`more than ${MAX_HIGH} high slices: ${givesWay?.believed.length}`);
  return Buffer.from([...(givesWay?.believed ?? []), ...Array.from({ length: MAX_HIGH }, () => 0)].slice(0, MAX_HIGH));
}

const PRIORITY_NAMES = new Map<number, keyof typeof PRIORITY>(
  Object.entries(PRIORITY).map(([name, value]) => [value, name as keyof typeof PRIORITY]),
);

function readGivesWay(buffer: Buffer, offset: number, identity: number): { givesWay?: GivesWay } {
  const count = Math.min(MAX_HIGH, buffer.readUInt8(offset + DEVICE_LIVE.highCount));
  if (count === 0) return {};
  const at = identity + DEVICE_IDENTITY.highBelieved;
  return {
    givesWay: {
      believed: [...buffer.subarray(at, at + count)],
      floor: buffer.readUInt16LE(offset + DEVICE_LIVE.lowFloor),
    },
  };
}

function readPriority(buffer: Buffer, offset: number): { priority?: keyof typeof PRIORITY } {
  const priority = PRIORITY_NAMES.get(buffer.readUInt8(offset + DEVICE_LIVE.priority)) ?? 'normal';
  return priority === 'normal' ? {} : { priority };
}

function readLive(buffer: Buffer, offset: number, identity: number): LiveLimit {
  const memory = buffer.readBigUInt64LE(offset + DEVICE_LIVE.memoryLimitBytes);
  const share = buffer.readUInt32LE(offset + DEVICE_LIVE.share);
  const softLimit = buffer.readUInt32LE(offset + DEVICE_LIVE.softLimit);
  const hostBacked = buffer.readBigUInt64LE(offset + DEVICE_LIVE.hostBackedLimitBytes);
  const atNs = buffer.readBigUInt64LE(offset + DEVICE_LIVE.steeredAtNs);
  const grantPpm = buffer.readUInt32LE(offset + DEVICE_LIVE.grantPpm);
  const steering: Steering = {
    atNs,
    grantPpm: grantPpm === 0 ? null : grantPpm,
    correctionPpm: buffer.readUInt32LE(offset + DEVICE_LIVE.correctionPpm) || PPM_WHOLE,
    alone: (buffer.readUInt32LE(offset + DEVICE_LIVE.flags) & LIVE_FLAGS.alone) !== 0,
    othersPpm: buffer.readUInt32LE(offset + DEVICE_LIVE.othersPpm),
  };
  return {
    memoryBytes: memory === 0n ? null : Number(memory),
    driverOverheadBytes: Number(buffer.readBigUInt64LE(offset + DEVICE_LIVE.driverOverheadBytes)),
    share: share === 0 || share > 100 ? 100 : share,
    softLimit: softLimit === 0 ? null : softLimit,
    ...(hostBacked === 0n ? {} : { hostBackedBytes: Number(hostBacked) }),
    generation: buffer.readUInt32LE(offset + DEVICE_LIVE.generation),
    ...readPriority(buffer, offset),
    ...readGivesWay(buffer, offset, identity),
    steering: atNs === 0n ? null : steering,
  };
}

/**
 * The bytes of a new limits file. The agent writes them to a temporary file and renames it before the container starts.
 * Throws RangeError for limits that the file cannot hold: requests were checked before, so these are programming
 * errors.
 */
export function encodeLimits(limits: NewLimits): Buffer {
  if (limits.devices.length > MAX_DEVICES)
    throw new RangeError(`more than ${MAX_DEVICES} GPUs: ${limits.devices.length}`);
  const buffer = Buffer.alloc(LIMITS_LAYOUT.structSize);
  buffer.writeBigUInt64LE(LIMITS_MAGIC, LIMITS_HEADER.magic);
  buffer.writeUInt32LE(ABI_VERSION, LIMITS_HEADER.version);
  buffer.writeUInt32LE(buffer.length, LIMITS_HEADER.size);
  buffer.writeUInt32LE(limits.devices.length, LIMITS_HEADER.deviceCount);
  const { denyUnlisted = true, unenforced = false, suspendable = false } = limits;
  buffer.writeUInt32LE(
    policyOf({ denyUnlisted, unenforced, memoryByDriver: false, suspendable }),
    LIMITS_HEADER.policy,
  );
  buffer.writeUInt32LE(LOG_LEVEL[limits.logLevel ?? 'error'], LIMITS_HEADER.logLevel);
  writeText(buffer, LIMITS_HEADER.allocation, TEXT_BYTES.limitsHeaderAllocation, limits.allocation, 'allocation id');
  limits.devices.forEach((device, index) => {
    const identity = LIMITS_LAYOUT.devices + index * DEVICE_IDENTITY.structSize;
    writeText(buffer, identity + DEVICE_IDENTITY.uuid, TEXT_BYTES.deviceIdentityUuid, device.uuid, 'GPU UUID');
    writeText(
      buffer,
      identity + DEVICE_IDENTITY.pciBusId,
      TEXT_BYTES.deviceIdentityPciBusId,
      device.pciBusId,
      'PCI bus id',
    );
    const live: LiveLimit = { ...device, driverOverheadBytes: 0, steering: null, generation: 0 };
    writeLive(buffer, LIMITS_LAYOUT.live + index * DEVICE_LIVE.structSize, live);
  });
  return buffer;
}

type Policy = Pick<Limits, 'denyUnlisted' | 'unenforced' | 'memoryByDriver' | 'suspendable'>;

function policyOf({ denyUnlisted, unenforced, memoryByDriver, suspendable }: Policy): number {
  return (
    (denyUnlisted ? POLICY.denyUnlisted : 0) |
    (unenforced ? POLICY.unenforced : 0) |
    (memoryByDriver ? POLICY.memoryByDriver : 0) |
    (suspendable ? POLICY.suspendable : 0)
  );
}

/** The write that changes the policy of a file: processes that start later read the new one. */
export function publishPolicy(policy: Policy): FileWrite {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(policyOf(policy));
  return { position: LIMITS_HEADER.policy, bytes };
}

/**
 * The writes, in this order, that publish `devices` in a file whose `sequence` is known. The first fills the inactive
 * copy, the second activates it: readers never wait, and a writer killed in between changes nothing.
 */
export function publishLive(sequence: number, devices: readonly LiveLimit[]): Publication {
  if (devices.length > MAX_DEVICES) throw new RangeError(`more than ${MAX_DEVICES} GPUs: ${devices.length}`);
  const copy = Buffer.alloc(LIVE_COPY_BYTES);
  devices.forEach((live, index) => {
    writeLive(copy, index * DEVICE_LIVE.structSize, live);
  });
  const activation = activate((sequence + 1) >>> 0, copy, Buffer.alloc(4));
  return {
    ...activation,
    writes: [
      ...devices.flatMap((live, index) =>
        live.givesWay === undefined
          ? []
          : [
              {
                position: LIMITS_LAYOUT.devices + index * DEVICE_IDENTITY.structSize + DEVICE_IDENTITY.highBelieved,
                bytes: believedOf(live),
              },
            ],
      ),
      ...activation.writes,
    ],
  };
}

/**
 * Like `publishLive` for what was published before, with a new steering of one GPU: this happens often, so the buffers
 * of `before` are used again.
 */
export function publishSteering(before: Publication, index: number, steering: Steering): Publication {
  const [copy, turn] = before.writes.slice(-2);
  if (copy === undefined || turn === undefined) throw new RangeError('an incomplete publication');
  writeSteering(copy.bytes, index * DEVICE_LIVE.structSize, steering);
  return activate((before.sequence + 1) >>> 0, copy.bytes, turn.bytes);
}

function activate(sequence: number, copy: Buffer, turn: Buffer): Publication {
  turn.writeUInt32LE(sequence);
  return {
    sequence,
    writes: [
      { position: LIMITS_LAYOUT.live + (sequence & 1) * LIVE_COPY_BYTES, bytes: copy },
      { position: LIMITS_HEADER.sequence, bytes: turn },
    ],
  };
}

/**
 * Whether calls ask for their GPU: not at all, because the slice is being suspended or resumed, because it is away, or
 * because it waits for its first turn. Only then do they wait in the library.
 */
export type SuspendedMark = keyof typeof SUSPENDED;

function suspendedMark(value: number): SuspendedMark {
  return (Object.keys(SUSPENDED) as SuspendedMark[]).find((mark) => SUSPENDED[mark] === value) ?? 'not';
}

/** The write that marks a slice; the next publication announces it. */
export function markSuspended(mark: SuspendedMark): FileWrite {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(SUSPENDED[mark]);
  return { position: LIMITS_HEADER.suspended, bytes };
}

/** Reads a limits file; a longer file of the same version comes from a newer agent, and its known part is read. */
export function decodeLimits(buffer: Buffer): LimitsDecoded {
  if (buffer.length < LIMITS_LAYOUT.structSize) {
    return { ok: false, code: 'truncated', reason: `${buffer.length} bytes instead of ${LIMITS_LAYOUT.structSize}` };
  }
  if (buffer.readBigUInt64LE(LIMITS_HEADER.magic) !== LIMITS_MAGIC)
    return { ok: false, code: 'magic', reason: 'not a limits file' };
  const version = buffer.readUInt32LE(LIMITS_HEADER.version);
  if (version !== ABI_VERSION)
    return { ok: false, code: 'version', reason: `version ${version} instead of ${ABI_VERSION}` };
  if (buffer.readUInt32LE(LIMITS_HEADER.size) > buffer.length) {
    return { ok: false, code: 'truncated', reason: `${buffer.length} bytes, the header says more` };
  }
  const count = buffer.readUInt32LE(LIMITS_HEADER.deviceCount);
  if (count > MAX_DEVICES) return { ok: false, code: 'devices', reason: `${count} GPUs, at most ${MAX_DEVICES} fit` };
  const sequence = buffer.readUInt32LE(LIMITS_HEADER.sequence);
  const live = LIMITS_LAYOUT.live + (sequence & 1) * LIVE_COPY_BYTES;
  const devices = Array.from({ length: count }, (_, index) => {
    const identity = LIMITS_LAYOUT.devices + index * DEVICE_IDENTITY.structSize;
    return {
      uuid: readText(buffer, identity + DEVICE_IDENTITY.uuid, TEXT_BYTES.deviceIdentityUuid),
      pciBusId: readText(buffer, identity + DEVICE_IDENTITY.pciBusId, TEXT_BYTES.deviceIdentityPciBusId),
      ...readLive(buffer, live + index * DEVICE_LIVE.structSize, identity),
    };
  });
  const policy = buffer.readUInt32LE(LIMITS_HEADER.policy);
  return {
    ok: true,
    limits: {
      allocation: readText(buffer, LIMITS_HEADER.allocation, TEXT_BYTES.limitsHeaderAllocation),
      denyUnlisted: (policy & POLICY.denyUnlisted) !== 0,
      unenforced: (policy & POLICY.unenforced) !== 0,
      memoryByDriver: (policy & POLICY.memoryByDriver) !== 0,
      suspendable: (policy & POLICY.suspendable) !== 0,
      suspended: suspendedMark(buffer.readUInt32LE(LIMITS_HEADER.suspended)),
      logLevel: LOG_LEVELS[buffer.readUInt32LE(LIMITS_HEADER.logLevel)] ?? 'debug',
      sequence,
      devices,
    },
  };
}
