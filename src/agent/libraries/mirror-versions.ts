import { lstat, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CURRENT, currentVersion, VERSIONS } from './mirror.js';

export interface VersionState {
  readonly versions: readonly string[];
  readonly current: string | null;
  /** Versions that are mounted in a mount namespace of this machine. */
  readonly mounted: ReadonlySet<string>;
  /** Time since the link was last changed; null without a link. */
  readonly switchedAgoMs: number | null;
}

/** A container in creation may have resolved the link already; it mounts the directory within this time. */
export const REMOVAL_GRACE_MS = 10 * 60_000;

/** The versions that can be removed, with the reason. */
export function planRemovals({
  versions,
  current,
  mounted,
  switchedAgoMs,
}: VersionState): { version: string; reason: string }[] {
  if (current === null || switchedAgoMs === null || switchedAgoMs < REMOVAL_GRACE_MS) return [];
  return versions
    .filter((version) => version !== current && !mounted.has(version))
    .map((version) => ({ version, reason: `${current} replaced it and no container has it mounted` }));
}

/**
 * The versions that the text of a `/proc/<pid>/mountinfo` contains. Its fourth field is the mounted directory within
 * its file system (proc(5)); the version's name identifies it, wherever that file system has its root.
 */
export function versionsInMountinfo(text: string, versions: readonly string[]): string[] {
  const mounted = new Set<string>();
  for (const line of text.split('\n')) {
    const root = line.split(' ', 4)[3];
    if (root === undefined || !root.includes(`/${VERSIONS}/`)) continue;
    // A mounted directory that was removed appears as `/path//deleted`.
    root.split('/').forEach((name, index, parts) => {
      if (parts[index - 1] === VERSIONS && versions.includes(name)) mounted.add(name);
    });
  }
  return [...mounted];
}

/** The kernel's first pid namespace has this number (include/linux/proc_ns.h). */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';

/**
 * Removes versions of the volume in `directory` that no container can still need, and returns them. Removes nothing
 * unless `processes` shows all processes of the machine and their mounts: an agent without `hostPID`, or without
 * permission, does not see all mounts.
 */
export async function removeUnusedVersions(
  directory: string,
  nowMs: number,
  processes = '/proc',
): Promise<{ version: string; reason: string }[]> {
  const versions = (await readdir(join(directory, VERSIONS))).filter((name) => !name.startsWith('.'));
  const current = await currentVersion(directory);
  if (versions.length === 0 || (versions.length === 1 && versions[0] === current)) return [];
  if ((await readlink(join(processes, 'self', 'ns', 'pid'))) !== FIRST_PID_NAMESPACE) return [];
  const switchedAgoMs = current === null ? null : nowMs - (await lstat(join(directory, CURRENT))).mtimeMs;
  const mounted = await mountedVersions(versions, processes);
  if (mounted === null) return [];
  const removals = planRemovals({ versions, current, switchedAgoMs, mounted });
  for (const { version } of removals) await rm(join(directory, VERSIONS, version), { recursive: true, force: true });
  return removals;
}

/** Reads the mounts of every mount namespace once, through one process of each. Null if a process cannot be read. */
async function mountedVersions(versions: readonly string[], processes: string): Promise<ReadonlySet<string> | null> {
  const mounted = new Set<string>();
  const namespaces = new Set<string>();
  for (const pid of (await readdir(processes)).filter((name) => /^\d+$/.test(name))) {
    try {
      const namespace = await readlink(join(processes, pid, 'ns', 'mnt'));
      if (namespaces.has(namespace)) continue;
      for (const version of versionsInMountinfo(await readFile(join(processes, pid, 'mountinfo'), 'utf8'), versions))
        mounted.add(version);
      namespaces.add(namespace);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      if (FORBIDDEN.has(code)) return null;
      if (!ENDED.has(code)) throw error;
    }
  }
  return mounted;
}

const ENDED = new Set(['ENOENT', 'ESRCH', 'EINVAL']);
const FORBIDDEN = new Set(['EACCES', 'EPERM']);
