import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Places of control groups; a test has its own. */
export interface HostPlaces {
  readonly proc: string;
  readonly cgroups: string;
}

export const HOST_PLACES: HostPlaces = { proc: '/proc', cgroups: '/sys/fs/cgroup' };

/** Files of a control group: limit, use, and what version 1 and 2 name a group without limit. */
const VERSIONS = [
  { mount: '', limit: 'memory.max', use: 'memory.current' },
  { mount: 'memory', limit: 'memory.limit_in_bytes', use: 'memory.usage_in_bytes' },
] as const;
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
  const text = await readFile(join(places.proc, String(pid), 'cgroup'), 'utf8').catch(() => '');
  const [, second] = /^0::(\/.*)$/mu.exec(text) ?? [];
  const [, first] = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/mu.exec(text) ?? [];
  const [path, version] = first === undefined ? [second, VERSIONS[0]] : [first, VERSIONS[1]];
  // A path outside of the agent's own control group namespace.
  if (path === undefined || path.startsWith('/..')) return null;
  let free = Infinity;
  for (let group = path; ; group = dirname(group)) {
    const read = async (name: string): Promise<string | null> =>
      readFile(join(places.cgroups, version.mount, group, name), 'utf8').catch(() => null);
    const [limit, use] = await Promise.all([read(version.limit), read(version.use)]);
    // The root has no such files; a group below it without them is not the process's.
    if (limit !== null && use !== null && limit !== 'max\n' && Number(limit) < UNLIMITED_BYTES)
      free = Math.min(free, Number(limit) - Number(use));
    if (limit === null && group === path && group !== '/') return null;
    if (group === '/') return free;
  }
}
