/**
 * A separate program for `gpu-manager doctor`: loads libcuda.so.1 as a container would, and prints as JSON the loaded
 * files and their answers. It is a separate process because a driver or library that crashes takes its process with it.
 * `interposition-probe.js` runs as a process without limits; `interposition-probe.js DIRECTORY` runs as a process of a
 * container whose /etc/vcuda is DIRECTORY and needs CAP_SYS_ADMIN.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import koffi, { type LibraryHandle } from 'koffi';
import { CONTAINER_SLICE_DIRECTORY } from '../../gpu/container-edits.js';

export interface ProbeReport {
  /** Paths of mapped files with names of CUDA or NVML libraries. */
  readonly mapped: readonly string[];
  /** Result of cuInit(0); 0 is success. */
  readonly init: number;
  /** Result of cuDriverGetVersion; null when it failed. */
  readonly cudaVersion: number | null;
  /** UUID of each device, 32 hexadecimal digits; null when the devices cannot be counted. */
  readonly uuids: readonly string[] | null;
  /** Results of a limited process; null without limits. */
  readonly limited: LimitedReport | null;
}

/** Results on the first device, as CUresult values; calls after the first one that is not 0 were not made. */
export interface LimitedReport {
  /** Why the directory could not be mounted, in which case the process ran without limits; null if it was mounted. */
  readonly problem: string | null;
  readonly context: number;
  /** The device's total memory as CUDA reports it, in bytes. */
  readonly totalBytes: number;
  /** Results of allocating WITHIN_BYTES, and then BEYOND_BYTES. */
  readonly within: number;
  readonly beyond: number;
}

const WITHIN_BYTES = 16 << 20;
const BEYOND_BYTES = 2 ** 31;
const NOT_TRIED = -1;

/** linux/sched.h, linux/mount.h */
const CLONE_NEWNS = 0x20000;
const MS_BIND = 0x1000;
const MS_BIND_ALL = 0x5000;
const MS_REC_PRIVATE = 0x44000;

/**
 * Mounts a directory at /etc/vcuda for this process only, in a private /etc: the machine's /etc has no such folder, and
 * every program with the library would see one that was created. Everything else of /etc stays where it was, by links:
 * the mirror usually lies there. Returns the error, or null.
 */
function moveIn(directory: string): string | null {
  const libc = koffi.load('libc.so.6');
  const unshare = libc.func('int unshare(int flags)') as (flags: number) => number;
  const mount = libc.func(
    'int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)',
  ) as (...args: unknown[]) => number;
  const failed = (what: string): string => `${what}: errno ${koffi.errno()}`;
  const above = dirname(CONTAINER_SLICE_DIRECTORY);
  const before = `${directory}-etc`;
  mkdirSync(before);
  if (unshare(CLONE_NEWNS) !== 0) return failed('unshare');
  if (mount('none', '/', null, MS_REC_PRIVATE, null) !== 0) return failed('mount of /');
  if (mount(above, before, null, MS_BIND_ALL, null) !== 0) return failed(`mount at ${before}`);
  if (mount('none', above, 'tmpfs', 0, null) !== 0) return failed(`mount at ${above}`);
  for (const name of readdirSync(before))
    if (name !== basename(CONTAINER_SLICE_DIRECTORY)) symlinkSync(join(before, name), join(above, name));
  mkdirSync(CONTAINER_SLICE_DIRECTORY);
  return mount(directory, CONTAINER_SLICE_DIRECTORY, null, MS_BIND, null) === 0
    ? null
    : failed(`mount at ${CONTAINER_SLICE_DIRECTORY}`);
}

function probe(directory: string | undefined): ProbeReport {
  const problem = directory === undefined ? null : moveIn(directory);
  const cuda = koffi.load('libcuda.so.1');
  const init = (cuda.func('int cuInit(unsigned int flags)') as (flags: number) => number)(0);
  const ask = (name: string): number | null => {
    const value: [number] = [0];
    return (cuda.func(`int ${name}(_Out_ int *value)`) as (value: [number]) => number)(value) === 0 ? value[0] : null;
  };
  const cudaVersion = ask('cuDriverGetVersion');
  const count = init === 0 ? ask('cuDeviceGetCount') : null;
  const uuidOf = cuda.func('int cuDeviceGetUuid(uint8_t *uuid, int device)') as (
    uuid: Buffer,
    device: number,
  ) => number;
  const uuids =
    count === null
      ? null
      : Array.from({ length: count }, (_, device) => {
          const uuid = Buffer.alloc(16);
          return uuidOf(uuid, device) === 0 ? uuid.toString('hex') : '';
        });
  const limited = directory === undefined || init !== 0 ? null : { problem, ...useDevice(cuda) };
  const maps = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .map((line) => line.split(/\s+/u)[5] ?? '');
  return {
    mapped: [...new Set(maps.filter((path) => /libcuda|nvidia-ml|libgpu-sim|control/u.test(path)))],
    init,
    cudaVersion,
    uuids,
    limited,
  };
}

function useDevice(cuda: LibraryHandle): Omit<LimitedReport, 'problem'> {
  const total: [number] = [0];
  (
    cuda.func('int cuDeviceTotalMem_v2(_Out_ size_t *bytes, int device)') as (bytes: [number], device: number) => number
  )(total, 0);
  const createContext = cuda.func('int cuCtxCreate_v2(_Out_ void **context, unsigned int flags, int device)') as (
    context: [unknown],
    flags: number,
    device: number,
  ) => number;
  const allocate = cuda.func('int cuMemAlloc_v2(_Out_ uint64_t *address, size_t bytes)') as (
    address: [number],
    bytes: number,
  ) => number;
  const context = createContext([null], 0, 0);
  const within = context === 0 ? allocate([0], WITHIN_BYTES) : NOT_TRIED;
  const beyond = within === 0 ? allocate([0], BEYOND_BYTES) : NOT_TRIED;
  return { context, totalBytes: Number(total[0]), within, beyond };
}

process.stdout.write(`${JSON.stringify(probe(process.argv[2]))}\n`);
