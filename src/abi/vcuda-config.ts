/**
 * `vcuda.config` and `pids.config`: the files that the control library of tkestack vcuda-controller reads in
 * `/etc/vcuda/<containerID>/`. They keep the limits of containers that still have that library. Packed little-endian
 * structure of 8240 bytes, as in its x86-64 build.
 */

/** Byte offsets in `vcuda.config`. */
export const VCUDA_CONFIG = {
  podUid: 0,
  limit: 48,
  containerName: 4096,
  busId: 8192,
  gpuMemoryBytes: 8208,
  utilization: 8216,
  hardLimit: 8220,
  driverMajor: 8224,
  driverMinor: 8228,
  enable: 8232,
  structSize: 8240,
} as const;

const POD_UID_BYTES = 48;
const CONTAINER_NAME_BYTES = 4096;
const BUS_ID_BYTES = 16;
const PID_BYTES = 4;
/** The library reads at most this many pids. */
export const MAX_PIDS = 1024;

/** The limits of a container in the file; the library supports one GPU only. */
export interface VcudaConfig {
  readonly podUid: string;
  readonly containerName: string;
  /** Left empty by the daemon; the library of the first generation fills its own copy. */
  readonly busId: string;
  readonly gpuMemoryBytes: number;
  /** Cores of a GPU. */
  readonly cores: number;
  /** Cores of a GPU that may be used while others leave it idle; null: hard share. */
  readonly softLimit: number | null;
  readonly driverVersion: { readonly major: number; readonly minor: number };
}

function writeText(buffer: Buffer, offset: number, room: number, text: string, what: string): void {
  if (Buffer.byteLength(text) >= room) throw new RangeError(`${what} is longer than ${room - 1} bytes`);
  buffer.write(text, offset, 'utf8');
}

/**
 * Major and minor of a driver version such as `470.57.02`. The original parsed the minor from everything after the
 * first dot and so wrote 0 for three-part versions; the library reads only the major, so the right minor is harmless.
 */
export function parseDriverVersion(version: string): { readonly major: number; readonly minor: number } {
  const [major = '0', minor = '0'] = version.split('.');
  return { major: Number.parseInt(major, 10) || 0, minor: Number.parseInt(minor, 10) || 0 };
}

/**
 * The 8240 bytes of `vcuda.config`. Limits are enabled below a whole GPU, as in the original. Throws RangeError for a
 * text that is too long.
 */
export function encodeVcudaConfig(config: VcudaConfig): Buffer {
  const buffer = Buffer.alloc(VCUDA_CONFIG.structSize);
  writeText(buffer, VCUDA_CONFIG.podUid, POD_UID_BYTES, config.podUid, 'pod UID');
  writeText(buffer, VCUDA_CONFIG.containerName, CONTAINER_NAME_BYTES, config.containerName, 'container name');
  writeText(buffer, VCUDA_CONFIG.busId, BUS_ID_BYTES, config.busId, 'PCI bus id');
  buffer.writeInt32LE(Math.min(config.softLimit ?? 0, 100), VCUDA_CONFIG.limit);
  buffer.writeBigUInt64LE(BigInt(config.gpuMemoryBytes), VCUDA_CONFIG.gpuMemoryBytes);
  buffer.writeInt32LE(config.cores, VCUDA_CONFIG.utilization);
  buffer.writeInt32LE(config.softLimit === null ? 1 : 0, VCUDA_CONFIG.hardLimit);
  buffer.writeInt32LE(config.driverVersion.major, VCUDA_CONFIG.driverMajor);
  buffer.writeInt32LE(config.driverVersion.minor, VCUDA_CONFIG.driverMinor);
  buffer.writeInt32LE(config.cores < 100 ? 1 : 0, VCUDA_CONFIG.enable);
  return buffer;
}

/**
 * `pids.config`: only host pids. Sorted, because the library uses a binary search without sorting, and truncated to the
 * number that it reads.
 */
export function encodePids(pids: readonly number[]): Buffer {
  const sorted = [...new Set(pids)].sort((a, b) => a - b).slice(0, MAX_PIDS);
  const buffer = Buffer.alloc(sorted.length * PID_BYTES);
  sorted.forEach((pid, index) => {
    buffer.writeInt32LE(pid, index * PID_BYTES);
  });
  return buffer;
}

/** Reads `pids.config`; an incomplete last entry is dropped. */
export function decodePids(buffer: Buffer): number[] {
  return Array.from({ length: Math.floor(buffer.length / PID_BYTES) }, (_, index) =>
    buffer.readInt32LE(index * PID_BYTES),
  );
}
