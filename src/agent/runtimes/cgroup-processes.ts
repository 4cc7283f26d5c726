import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupPlace } from './cgroup-path.js';

/**
 * Host ids of the processes in a control group and all below it, in ascending order; null when it is not to be found
 * below `cgroups`, where the machine's control groups are mounted: version 2 at the top or in `unified`, version 1 by
 * controller.
 */
export async function cgroupProcesses(
  cgroups: string,
  place: Pick<CgroupPlace, 'path' | 'controllers'>,
): Promise<number[] | null> {
  const { path, controllers } = place;
  const mounts =
    controllers === null
      ? ['', 'unified']
      : [controllers.join(','), ...controllers].map((name) => name.replace(/^name=/, ''));
  for (const mount of mounts) {
    const pids = await processesBelow(join(cgroups, mount, path));
    if (pids !== null) return [...new Set(pids)].sort((a, b) => a - b);
  }
  return null;
}

async function processesBelow(directory: string): Promise<number[] | null> {
  let text: string;
  try {
    text = await readFile(join(directory, 'cgroup.procs'), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // In a threaded group of version 2 the file cannot be read; its processes are listed by the group above.
    if (code === 'EOPNOTSUPP') text = '';
    else if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENOTDIR') return null;
    else throw error;
  }
  const pids = text.split('\n').flatMap((line) => (line === '' || line === '0' ? [] : [Number(line)]));
  for (const name of await directoriesIn(directory))
    pids.push(...((await processesBelow(join(directory, name))) ?? []));
  return pids;
}

async function directoriesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    // The group went away with its last process.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
