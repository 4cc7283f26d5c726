import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CpuTopology } from './cpu-affinity.js';
import { parseCpuList } from './cpu-list.js';

/** Directory in which Linux describes CPUs and NUMA nodes. */
const SYSTEM_DIRECTORY = '/sys/devices/system';

/** The CPUs of this machine and of each of its NUMA nodes; null if they cannot be read. */
export async function readCpuTopology(directory: string = SYSTEM_DIRECTORY): Promise<CpuTopology | null> {
  const online = await readList(join(directory, 'cpu/online'));
  if (online === null) return null;
  // Isolated CPUs are reserved for programs that are bound to them explicitly.
  const isolated = (await readList(join(directory, 'cpu/isolated'))) ?? new Set();
  const names = await readdir(join(directory, 'node')).catch(() => []);
  const byNode = new Map<number, ReadonlySet<number>>();
  for (const name of names) {
    const node = /^node(\d+)$/.exec(name)?.[1];
    if (node === undefined) continue;
    const cpus = await readList(join(directory, 'node', name, 'cpulist'));
    if (cpus === null) return null;
    byNode.set(Number(node), cpus);
  }
  return { usable: new Set([...online].filter((cpu) => !isolated.has(cpu))), byNode };
}

async function readList(path: string): Promise<ReadonlySet<number> | null> {
  try {
    return parseCpuList(await readFile(path, 'utf8'));
  } catch {
    return null;
  }
}
