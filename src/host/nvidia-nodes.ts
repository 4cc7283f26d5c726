import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Device nodes that every CUDA program needs; the driver's modules or nvidia-modprobe create them. */
const NEEDED = ['nvidiactl', 'nvidia-uvm'];

/** Device nodes that are passed on if the machine has them: for profilers, debuggers and graphics. */
const OPTIONAL = ['nvidia-uvm-tools', 'nvidia-modeset'];

/** Directories in which the driver describes its capabilities and creates their device nodes. */
const CAPABILITIES = '/proc/driver/nvidia/capabilities';
const CAPABILITY_DIRECTORY = 'nvidia-caps';

/** The host's /dev: a container's own is filled when it starts. */
export function hostDevices(hostRoot: string): string {
  const mounted = join(hostRoot, 'dev');
  return existsSync(mounted) ? mounted : '/dev';
}

/** The device nodes of the NVIDIA driver besides those of the GPUs, as paths in the searched directory. */
export interface NvidiaNodes {
  readonly found: readonly string[];
  /** Missing nodes that every CUDA program needs. */
  readonly missing: readonly string[];
}

/** The device nodes of NVIDIA's driver that the machine has, as paths below `devices`. */
export function nvidiaNodeNames(devices = '/dev'): readonly string[] {
  const names = (directory: string) => {
    try {
      return readdirSync(join(devices, directory)).sort();
    } catch {
      return [];
    }
  };
  return [
    ...names('').filter((name) => /^nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)$/.test(name)),
    ...names('nvidia-caps').map((name) => join('nvidia-caps', name)),
  ];
}

/**
 * Finds the nodes that every container with a GPU gets. The result excludes the nodes below `nvidia-caps`, which give
 * access to one MIG instance or to the management of all instances.
 */
export function findNvidiaNodes(devices = '/dev'): NvidiaNodes {
  const present = (name: string) =>
    statSync(join(devices, name), { throwIfNoEntry: false })?.isCharacterDevice() === true;
  return { found: [...NEEDED, ...OPTIONAL].filter(present), missing: NEEDED.filter((name) => !present(name)) };
}

/**
 * The nodes that give access to a MIG instance, below /dev: of its GPU instance and of its compute instance.
 * `gpuMinor` is N of the GPU's `/dev/nvidiaN`. Empty where the driver shows no such capability.
 */
export function migInstanceNodes(
  gpuMinor: number,
  gpuInstance: number,
  computeInstance: number,
  capabilities = CAPABILITIES,
): readonly string[] {
  const directory = `gpu${gpuMinor}/mig/gi${gpuInstance}`;
  return [`${directory}/access`, `${directory}/ci${computeInstance}/access`].flatMap((name) => {
    const minor = deviceMinor(join(capabilities, name));
    return minor === null ? [] : [`${CAPABILITY_DIRECTORY}/nvidia-cap${minor}`];
  });
}

function deviceMinor(path: string): number | null {
  try {
    const minor = /^DeviceFileMinor:\s*(\d+)/mu.exec(readFileSync(path, 'utf8'))?.[1];
    return minor === undefined ? null : Number(minor);
  } catch {
    // The instance was removed, or this /proc shows no capabilities.
    return null;
  }
}
