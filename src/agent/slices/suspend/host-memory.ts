import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cgroupLines, groupFolder } from '../../runtimes/index.js';

/** Places of control groups; a test has its own. */
export interface HostPlaces {
  readonly proc: string;
  readonly cgroups: string;
}

export const HOST_PLACES: HostPlaces = { proc: '/proc', cgroups: '/sys/fs/cgroup' };

/** Files of a control group: limit, use, and where a hierarchy is mounted. */
const UNIFIED = { mount: '', limit: 'memory.max', use: 'memory.current' };
const FIRST = { mount: 'memory', limit: 'memory.limit_in_bytes', use: 'memory.usage_in_bytes' };
/** Version 1 has no word for "no limit" but a number near 2^63. */
const UNLIMITED_BYTES = 2 ** 60;

/** Memory that the host can give without swapping (`MemAvailable`); null if unknown. */
export async function freeHostBytes({ proc }: HostPlaces = HOST_PLACES): Promise<number | null> {
  const text = await readFile(join(proc, 'meminfo'), 'utf8').catch(() => '');
  const [, kib] = /^MemAvailable:\s+(\d+) kB$/mu.exec(text) ?? [];
  return kib === undefined ? null : Number(kib) * 1024;
}

/**
 * What a process may still use by the limits of its control group and of all above it; Infinity without a limit, null
 * if the control group is unknown.
 */
export async function freeGroupBytes(pid: number, places: HostPlaces = HOST_PLACES): Promise<number | null> {
  const lines = cgroupLines(await readFile(join(places.proc, String(pid), 'cgroup'), 'utf8').catch(() => ''));
  const first = lines.find(({ controllers }) => controllers?.includes('memory') === true);
  const group = first ?? lines.find(({ controllers }) => controllers === null);
  const { mount, limit, use } = first === undefined ? UNIFIED : FIRST;
  const root = join(places.cgroups, mount);
  const own = group === undefined ? null : groupFolder(root, group.path);
  if (own === null) return null;
  let free = Infinity;
  for (let folder = own; ; folder = dirname(folder)) {
    const [most, used] = await Promise.all([readOrNull(join(folder, limit)), readOrNull(join(folder, use))]);
    // The root has no such files; a group below it without them is not the process's.
    if (most === null && folder === own && folder !== root) return null;
    if (most !== null && used !== null && most !== 'max\n' && Number(most) < UNLIMITED_BYTES)
      free = Math.min(free, Number(most) - Number(used));
    if (folder === root) return free;
  }
}

const readOrNull = (path: string): Promise<string | null> => readFile(path, 'utf8').catch(() => null);
