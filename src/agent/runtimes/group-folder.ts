import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A tree of control groups that is deeper than this is not searched further. */
const DEEPEST = 6;

/** Where paths begin that lead out of the agent's own group, by hierarchy and number of steps. */
const beginnings = new Map<string, string>();

/**
 * The folder of a control group that `/proc/<pid>/cgroup` names `path`, in the hierarchy below `root`; null if there is
 * none. An agent in a control group namespace of its own sees other groups relative to its own: `/../../kubepods/pod1`.
 * Nothing tells the name of the group where such a path begins, so it is searched: names below it are unique.
 */
export function groupFolder(root: string, path: string): string | null {
  const parts = path.split('/').filter((part) => part !== '');
  const up = parts.findIndex((part) => part !== '..');
  if (up === 0 || parts.length === 0) return existing(join(root, path));
  const below = parts.slice(up < 0 ? parts.length : up).join('/');
  if (below === '' || below.split('/').includes('..')) return null;
  const key = `${root}:${up}`;
  const known = beginnings.get(key);
  const found = (known === undefined ? null : existing(join(known, below))) ?? search(root, below);
  if (found !== null) beginnings.set(key, found.slice(0, -below.length - 1));
  return found;
}

function existing(folder: string): string | null {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true ? folder : null;
}

/** Level by level: the first folder that contains `below`. */
function search(root: string, below: string): string | null {
  for (let level = [root], depth = 0; depth <= DEEPEST; level = level.flatMap(foldersIn), depth += 1)
    for (const folder of level) {
      const found = existing(join(folder, below));
      if (found !== null) return found;
    }
  return null;
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(folder, entry.name)] : [],
    );
  } catch {
    // The group has ended.
    return [];
  }
}
