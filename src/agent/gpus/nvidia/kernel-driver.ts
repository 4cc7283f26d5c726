import { execFile } from 'node:child_process';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The kernel's side of the driver: modules, device nodes, and its GPUs. */
export interface KernelDriver {
  /**
   * Loads the modules if their device nodes are missing; returns a text about its actions and failures, or null if
   * nothing was missing.
   */
  ensureLoaded(): Promise<string | null>;
  /** PCI bus ids of the kernel driver's present GPUs; null if the kernel does not report them. */
  gpus(): Promise<readonly string[] | null>;
  /** NUMA node of a GPU according to the kernel; null without one. */
  numaNode(pciBusId: string): Promise<number | null>;
}

export interface KernelPaths {
  readonly dev: string;
  readonly proc: string;
  readonly sys: string;
}

/** Runs a program; rejects if it fails or is missing. */
export type RunProgram = (program: string, args: readonly string[]) => Promise<void>;

const RUN_TIMEOUT_MS = 30_000;

const runProgram: RunProgram = async (program, args) => {
  await promisify(execFile)(program, [...args], { timeout: RUN_TIMEOUT_MS });
};

/** Without these device nodes no container can use a GPU. */
const NODES = ['nvidiactl', 'nvidia-uvm'] as const;

/** `modprobe` loads the modules; on a machine without udev, `nvidia-modprobe` creates their nodes. */
const LOADERS: readonly (readonly [string, readonly string[]])[] = [
  ['modprobe', ['-a', 'nvidia', 'nvidia-uvm']],
  ['nvidia-modprobe', ['-u', '-c', '0']],
];

/** The kernel of this machine. */
export function kernelDriver(
  paths: KernelPaths = { dev: '/dev', proc: '/proc', sys: '/sys' },
  run: RunProgram = runProgram,
): KernelDriver {
  const missing = async (): Promise<readonly string[]> => {
    const present = await Promise.all(NODES.map((node) => exists(join(paths.dev, node))));
    return NODES.filter((_, at) => present[at] === false).map((node) => join(paths.dev, node));
  };
  return {
    async ensureLoaded() {
      const absent = await missing();
      if (absent.length === 0) return null;
      const tried: string[] = [];
      for (const [program, args] of LOADERS) {
        const outcome = await run(program, args).then(
          () => 'done',
          (error: unknown) => firstLine(error),
        );
        tried.push(`${program}: ${outcome}`);
        if ((await missing()).length === 0)
          return `loaded kernel modules with ${program}, since there was no ${absent.join(' and ')}`;
      }
      return `there is no ${(await missing()).join(' and ')}, and kernel modules could not be loaded (${tried.join('; ')})`;
    },
    async gpus() {
      const names = await readdir(join(paths.proc, 'driver/nvidia/gpus')).catch(() => null);
      return names === null ? null : names.sort();
    },
    async numaNode(pciBusId) {
      const address = pciBusId.toLowerCase().replace(/^0{4}(?=[0-9a-f]{4}:)/u, '');
      const text = await readFile(join(paths.sys, 'bus/pci/devices', address, 'numa_node'), 'utf8').catch(() => '-1');
      const node = Number.parseInt(text, 10);
      return Number.isNaN(node) || node < 0 ? null : node;
    },
  };
}

/** No kernel driver, for libraries that need none, such as the simulated one. */
export const noKernelDriver: KernelDriver = {
  ensureLoaded: () => Promise.resolve(null),
  gpus: () => Promise.resolve(null),
  numaNode: () => Promise.resolve(null),
};

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}
