import { execFile } from 'node:child_process';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encodeVcudaConfig, VCUDA_CONFIG } from '../../src/abi/vcuda-config.js';
import { LimitsWriter } from '../../src/agent/slices/limits/limits-writer.js';
import { BUILD_DIRECTORY } from '../sim/machine.js';

const run = promisify(execFile);

export const LIBRARIES = [
  'none',
  'ours',
  'ours with agent',
  'HAMi-core',
  'vgpu-manager',
  'vgpu-manager, AIMD',
  'vcuda-controller',
] as const;

/** What a folder of other projects' libraries holds: files by their own names, and a text with a line for each. */
export const PEER_FILES = ['libvgpu.so', 'libvgpu-control.so', 'libcuda-control.so', 'versions'];
const [HAMI_CORE, VGPU_MANAGER, VCUDA_CONTROLLER] = PEER_FILES as [string, string, string, string];

/** A library under test; `none`: the driver alone. */
export type Library = (typeof LIBRARIES)[number];

/** Those that limit. */
export const LIMITERS = LIBRARIES.filter((library) => library !== 'none');

/** The limits of a container; null: none. */
export interface Limits {
  readonly share: number | null;
  readonly memoryMib: number | null;
  /** Where others leave the GPU idle; absent: the share. Of vgpu-manager. */
  readonly softLimit?: number;
  /** Of HAMi-core; absent: none, and the share is enforced whatever others do. */
  readonly priority?: 'high' | 'low';
}

/** What a program of the container gets, besides the container's folders. */
export interface Environment {
  readonly preload: string | null;
  readonly variables: Readonly<Record<string, string>>;
}

/** What a library is set up with. */
export interface Setup {
  /** The folder of PEER_FILES. */
  readonly peers: string;
  /** The folder of the container. */
  readonly directory: string;
  readonly gpuUuid: string;
  readonly limits: Limits;
  /** With the agent: the slice that it made. */
  readonly slice: string | null;
}

const DRIVER_VERSION = '580.95.05';
const NO_MEMORY_LIMIT_BYTES = 2 ** 44;
const MIB = 2 ** 20;

/** Prepares a container's folders for a library, as the documents of its project say. */
export async function install(library: Library, setup: Setup): Promise<Environment> {
  const { peers } = setup;
  switch (library) {
    case 'none':
      await installDriver(setup, null);
      return { preload: null, variables: {} };
    case 'ours':
    case 'ours with agent':
      return installOurs(setup);
    case 'HAMi-core':
      await installDriver(setup, null);
      return hami(setup, join(peers, HAMI_CORE));
    case 'vgpu-manager':
    case 'vgpu-manager, AIMD':
      await installDriver(setup, null);
      return vgpuManager(setup, library === 'vgpu-manager' ? null : 'aimd');
    case 'vcuda-controller':
      await installDriver(setup, join(peers, VCUDA_CONTROLLER));
      return vcudaController(setup);
  }
}

/** The driver's libraries; `front` replaces libcuda and libnvidia-ml, and finds the real ones by their version. */
async function installDriver({ directory }: Setup, front: string | null): Promise<void> {
  for (const name of ['libcuda', 'libnvidia-ml']) {
    const real = `${name}.so.${DRIVER_VERSION}`;
    await symlink(join(BUILD_DIRECTORY, 'sim', `${name}.so.1`), join(directory, 'lib', real));
    await symlink(front ?? real, join(directory, 'lib', `${name}.so.1`));
  }
}

async function installOurs({ directory, gpuUuid, limits, slice }: Setup): Promise<Environment> {
  const library = join(directory, 'lib');
  await symlink(join(BUILD_DIRECTORY, 'libcuda-control.so'), join(library, 'libcuda.so.1'));
  await symlink(join(BUILD_DIRECTORY, 'sim', 'libcuda.so.1'), join(library, 'libcuda-origin.so.1'));
  await symlink(join(BUILD_DIRECTORY, 'libnvml-control.so'), join(library, 'libnvidia-ml.so.1'));
  await symlink(join(BUILD_DIRECTORY, 'sim', 'libnvidia-ml.so.1'), join(library, 'libnvidia-ml-origin.so.1'));
  const mounted = join(directory, 'etc', 'vcuda');
  if (slice !== null) {
    await symlink(slice, mounted);
  } else {
    await mkdir(join(mounted, 'usage'), { recursive: true });
    const memoryBytes = limits.memoryMib === null ? null : limits.memoryMib * MIB;
    const device = { uuid: gpuUuid, pciBusId: '', memoryBytes, share: limits.share ?? 100, softLimit: null };
    const file = join(mounted, 'vgpu.limits');
    (await LimitsWriter.create(file, { allocation: 'bench', devices: [device] })).close();
  }
  return { preload: null, variables: {} };
}

/** The file that the programs of a container share, and HAMi's monitor reads and writes. */
export const hamiRegion = (directory: string): string => join(directory, 'cudevshr.cache');

function hami({ directory, limits }: Setup, library: string): Environment {
  return {
    preload: library,
    variables: {
      CUDA_REDIRECT: library,
      LIBCUDA_LOG_LEVEL: '0',
      CUDA_DEVICE_MEMORY_SHARED_CACHE: hamiRegion(directory),
      ...(limits.priority === undefined
        ? { GPU_CORE_UTILIZATION_POLICY: 'FORCE' }
        : { CUDA_TASK_PRIORITY: limits.priority === 'high' ? '0' : '1' }),
      ...(limits.share === null ? {} : { CUDA_DEVICE_SM_LIMIT: String(limits.share) }),
      ...(limits.memoryMib === null ? {} : { CUDA_DEVICE_MEMORY_LIMIT_0: `${limits.memoryMib}m` }),
    },
  };
}

/** Its node agent writes no limit for a share of 100: the library would wait for ever. */
async function vgpuManager(
  { peers, directory, gpuUuid, limits }: Setup,
  controller: string | null,
): Promise<Environment> {
  const registry = join(directory, 'etc', 'vgpu-manager', 'registry');
  await mkdir(registry, { recursive: true });
  await mkdir(join(directory, 'etc', 'vgpu-manager', 'config'), { recursive: true });
  for (const folder of ['.vgpu_lock', '.vmem_node', '.sm_node']) await mkdir(join(directory, 'tmp', folder));
  await installRegistration(join(registry, 'device-client'));
  const share = limits.share === null || limits.share >= 100 ? null : String(limits.share);
  return {
    preload: join(peers, VGPU_MANAGER),
    variables: {
      MANAGER_COMPATIBILITY_MODE: '200',
      MANAGER_VISIBLE_DEVICES: gpuUuid,
      MANAGER_CLIENT_REGISTER_UUID: 'u',
      VGPU_POD_UID: '11111111-2222-3333-4444-555555555555',
      VGPU_POD_NAME: 'p',
      VGPU_POD_NAMESPACE: 'd',
      VGPU_CONTAINER_NAME: 'bench',
      VMEMORY_NODE_ENABLED: 'false',
      EXTERNAL_SM_WATCHER_ENABLED: 'false',
      CUDA_SM_SHARED_BUCKET: 'true',
      CUDA_MEM_RATIO: '1.00',
      LOGGER_LEVEL: '0',
      ...(share === null
        ? {}
        : { CUDA_CORE_LIMIT_0: share, CUDA_CORE_SOFT_LIMIT_0: String(limits.softLimit ?? share) }),
      ...(limits.memoryMib === null ? {} : { CUDA_MEM_LIMIT_0: `${limits.memoryMib}m` }),
      ...(controller === null ? {} : { CUDA_SM_CONTROLLER: controller }),
    },
  };
}

async function vcudaController({ directory, limits }: Setup): Promise<Environment> {
  const programs = join(directory, 'local', 'nvidia', 'bin');
  await mkdir(programs, { recursive: true });
  await installRegistration(join(programs, 'gpu-client'));
  const configuration = join(directory, 'etc', 'vcuda');
  await mkdir(configuration, { recursive: true });
  const memoryBytes = limits.memoryMib === null ? NO_MEMORY_LIMIT_BYTES : limits.memoryMib * MIB;
  await writeFile(join(configuration, 'vcuda.config'), vcudaConfig(memoryBytes, limits.share ?? 100));
  return { preload: null, variables: { LOGGER_LEVEL: '0' } };
}

/** What its node agent writes; limits also hold for a whole GPU, so that memory alone can be limited. */
function vcudaConfig(memoryBytes: number, share: number): Buffer {
  const bytes = encodeVcudaConfig({
    podUid: '11111111-2222-3333-4444-555555555555',
    containerName: 'bench',
    busId: '',
    gpuMemoryBytes: memoryBytes,
    cores: share,
    softLimit: null,
    driverVersion: { major: 0, minor: 0 },
  });
  bytes.writeInt32LE(share, VCUDA_CONFIG.limit);
  bytes.writeInt32LE(1, VCUDA_CONFIG.enable);
  return bytes;
}

/** In place of the programs by which two libraries register with their node agents. */
async function installRegistration(file: string): Promise<void> {
  const program = 'build/bench/peers/register';
  await run('make', ['--silent', '-C', join(BUILD_DIRECTORY, '..'), program]);
  await copyFile(join(BUILD_DIRECTORY, '..', program), file);
}

/** The folders that every container has. */
export async function makeFolders(directory: string): Promise<void> {
  for (const folder of ['etc', 'lib', 'tmp/vgpulock', 'proc/nvidia', 'local'])
    await mkdir(join(directory, folder), { recursive: true });
  for (const file of ['passwd', 'nsswitch.conf', 'ld.so.cache'])
    await copyFile(`/etc/${file}`, join(directory, 'etc', file)).catch(() => undefined);
  await writeFile(
    join(directory, 'proc', 'nvidia', 'version'),
    `NVRM version: NVIDIA UNIX x86_64 Kernel Module  ${DRIVER_VERSION}  Release Build\n`,
  );
}
