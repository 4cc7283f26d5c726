import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Nodes that no CUDA program works without; the driver's modules or nvidia-modprobe make them. */
const NEEDED = ['nvidiactl', 'nvidia-uvm'];

/** Nodes that programs use where the machine has them: profilers and debuggers, graphics. */
const OPTIONAL = ['nvidia-uvm-tools', 'nvidia-modeset'];

const CAPABILITY_DIRECTORY = 'nvidia-caps';

/** Minor numbers of `mig/config` and `mig/monitor` where the driver does not tell them. */
const USUAL_MANAGEMENT_MINORS = [1, 2];

/** The device nodes of the NVIDIA driver besides those of the GPUs, as paths below the directory that was looked at. */
export interface NvidiaNodes {
  readonly found: readonly string[];
  /** What no CUDA program works without and is not there. */
  readonly missing: readonly string[];
}

/**
 * Finds the driver's nodes. Of the nodes below `nvidia-caps` it returns only those that give access to a part of a GPU:
 * nodes for configuring and monitoring whole GPUs would let one container change another's GPU.
 */
export function findNvidiaNodes(devices = '/dev', capabilities = '/proc/driver/nvidia/capabilities'): NvidiaNodes {
  const present = (name: string) =>
    statSync(join(devices, name), { throwIfNoEntry: false })?.isCharacterDevice() === true;
  const management = managementMinors(capabilities);
  const caps = namesIn(join(devices, CAPABILITY_DIRECTORY)).flatMap((name) => {
    const minor = /^nvidia-cap(\d+)$/.exec(name)?.[1];
    return minor === undefined || management.has(Number(minor)) ? [] : [`${CAPABILITY_DIRECTORY}/${name}`];
  });
  return { found: [...NEEDED, ...OPTIONAL, ...caps].filter(present), missing: NEEDED.filter((name) => !present(name)) };
}

function managementMinors(capabilities: string): ReadonlySet<number> {
  const files = ['mig/config', 'mig/monitor', 'fabric-imex-mgmt'];
  const told = files.flatMap((name) => {
    try {
      const minor = /^DeviceFileMinor:\s*(\d+)/m.exec(readFileSync(join(capabilities, name), 'utf8'))?.[1];
      return minor === undefined ? [] : [Number(minor)];
    } catch {
      // A driver without this capability, or a /proc that shows none.
      return [];
    }
  });
  return new Set([...USUAL_MANAGEMENT_MINORS, ...told]);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
