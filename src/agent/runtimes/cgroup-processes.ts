import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupPlace } from './cgroup-path.js';
import { groupFolder } from './group-folder.js';

/**
 * Host pids of the processes in a cgroup and in the cgroups below it, ascending; null if the cgroup does not exist.
 * `cgroups` is the mount point of the machine's cgroups: version 2 is there or in `unified`, version 1 in one directory
 * per controller.
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
    const folder = groupFolder(join(cgroups, mount), path);
    const pids = folder === null ? null : await processesBelow(folder);
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
    // The file of a threaded cgroup of version 2 cannot be read (EOPNOTSUPP, which Node calls ENOTSUP); the group above
    // lists its processes.
    if (code === 'ENOTSUP') text = '';
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
    // The cgroup was removed with its last process.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
