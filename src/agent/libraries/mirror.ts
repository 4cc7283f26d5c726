import * as nodeFs from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import { withoutExports } from './elf-symbols.js';
import type { MirrorPlan, MirrorStep } from './mirror-plan.js';

/** The file system calls that create a mirror; a test passes calls that fail at a chosen point. */
export type MirrorFs = Pick<
  typeof nodeFs,
  | 'mkdir'
  | 'link'
  | 'copyFile'
  | 'readFile'
  | 'writeFile'
  | 'chmod'
  | 'stat'
  | 'lstat'
  | 'symlink'
  | 'readlink'
  | 'readdir'
  | 'rename'
  | 'rm'
  | 'open'
>;

/** Directory of all versions, in the volume's directory. */
export const VERSIONS = 'versions';
/** Link to the version that new containers get. */
export const CURRENT = 'current';

const UNFINISHED = '.unfinished-';

/**
 * Makes `directory/current` lead to a directory with the plan's content, and returns the name of that version.
 *
 * The new version is built under a temporary name, synced, and renamed; then the link is replaced by a rename. A reader
 * that follows the link before, during or after a crash sees the whole old version or the whole new one. Containers
 * that mounted a version keep it, since its content never changes. An existing version is reused if it is complete.
 */
export async function applyMirror(directory: string, plan: MirrorPlan, fs: MirrorFs = nodeFs): Promise<string> {
  const versions = join(directory, VERSIONS);
  await fs.mkdir(versions, { recursive: true, mode: 0o755 });
  await removeUnfinished(directory, fs);
  const version = await buildVersion(versions, plan, fs);
  if ((await currentVersion(directory, fs)) !== version) {
    const link = join(directory, `${UNFINISHED}${CURRENT}`);
    await fs.symlink(join(VERSIONS, version), link);
    await fs.rename(link, join(directory, CURRENT));
    await sync(directory, fs);
  }
  await linkPathsOfOriginal(directory, plan, fs);
  return version;
}

/**
 * Links the paths of the original, such as `directory/lib64`, to the current version, for scripts and volumes that use
 * them. A directory of the original stays: its containers may have it mounted. A link to what the version lacks is
 * removed: the original does not start where it should make a directory and finds a link that leads nowhere.
 */
async function linkPathsOfOriginal(directory: string, plan: MirrorPlan, fs: MirrorFs): Promise<void> {
  const wanted = plan.steps.flatMap(({ kind, to }) => (kind === 'directory' && !to.includes('/') ? [to] : []));
  for (const name of await fs.readdir(directory)) {
    const path = join(directory, name);
    if (wanted.includes(name) || (await linkTarget(path, fs)) !== join(CURRENT, name)) continue;
    await fs.rm(path);
    await sync(directory, fs);
  }
  for (const name of wanted) {
    if (await exists(join(directory, name), fs)) continue;
    await fs.symlink(join(CURRENT, name), join(directory, name));
    await sync(directory, fs);
  }
}

/** Null for a path that is no link. */
async function linkTarget(path: string, fs: Pick<MirrorFs, 'readlink'>): Promise<string | null> {
  try {
    return await fs.readlink(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EINVAL') return null;
    throw error;
  }
}

/** The version that new containers get; null before the first one. */
export async function currentVersion(
  directory: string,
  fs: Pick<MirrorFs, 'readlink'> = nodeFs,
): Promise<string | null> {
  try {
    const target = await fs.readlink(join(directory, CURRENT));
    return target.startsWith(`${VERSIONS}/`) ? target.slice(VERSIONS.length + 1) : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function removeUnfinished(directory: string, fs: MirrorFs): Promise<void> {
  for (const parent of [directory, join(directory, VERSIONS)]) {
    const names = (await fs.readdir(parent)).filter((name) => name.startsWith(UNFINISHED));
    for (const name of names) await fs.rm(join(parent, name), { recursive: true, force: true });
  }
}

/**
 * Finds or builds a complete version for the plan; a damaged version stays for its containers, and another is built
 * under the next name.
 */
async function buildVersion(versions: string, plan: MirrorPlan, fs: MirrorFs): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const version = attempt === 0 ? plan.version : `${plan.version}.${attempt}`;
    const place = join(versions, version);
    const state = await inspect(place, plan.steps, fs);
    if (state === 'complete') return version;
    if (state === 'damaged') continue;
    const building = join(versions, `${UNFINISHED}${version}`);
    await fs.mkdir(building, { mode: 0o755 });
    for (const step of plan.steps) await carryOut(step, building, fs);
    for (const step of plan.steps) if (step.kind === 'directory') await sync(join(building, step.to), fs);
    // Every user of a container must be able to read the directory, independent of the agent's umask.
    await fs.chmod(building, 0o755);
    await sync(building, fs);
    await fs.rename(building, place);
    await sync(versions, fs);
    return version;
  }
}

async function inspect(
  place: string,
  steps: readonly MirrorStep[],
  fs: MirrorFs,
): Promise<'absent' | 'damaged' | 'complete'> {
  if (!(await exists(place, fs))) return 'absent';
  for (const step of steps) if (!(await exists(join(place, step.to), fs))) return 'damaged';
  return 'complete';
}

async function exists(path: string, fs: MirrorFs): Promise<boolean> {
  try {
    await fs.lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function carryOut(step: MirrorStep, building: string, fs: MirrorFs): Promise<void> {
  const to = join(building, step.to);
  switch (step.kind) {
    case 'directory':
      await fs.mkdir(to, { mode: 0o755 });
      await fs.chmod(to, 0o755);
      return;
    case 'link':
      try {
        await fs.link(step.from.path, to);
      } catch (error) {
        // Another file system or mount, or one without hard links. If the source is missing, the copy fails as well.
        if (!LINK_REFUSALS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
        await copy(step.from.path, to, fs);
      }
      return;
    case 'copy':
      if (step.without === undefined || step.without.length === 0) await copy(step.from.path, to, fs);
      else await copyWithout(step.from.path, to, step.without, fs);
      return;
    case 'symlink':
      await fs.symlink(step.target, to);
  }
}

const LINK_REFUSALS = new Set(['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'EROFS', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

async function copy(from: string, to: string, fs: MirrorFs): Promise<void> {
  await fs.copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await finishCopy(from, to, fs);
}

/** Copies a library in which programs do not find `names`. */
async function copyWithout(from: string, to: string, names: readonly string[], fs: MirrorFs): Promise<void> {
  const changed = withoutExports(await fs.readFile(from), new Set(names));
  if (!changed.ok) throw new Error(`${from}: ${changed.reason}`);
  await fs.writeFile(to, changed.value, { flag: 'wx' });
  await finishCopy(from, to, fs);
}

async function finishCopy(from: string, to: string, fs: MirrorFs): Promise<void> {
  await fs.chmod(to, ((await fs.stat(from)).mode & 0o777) | 0o444);
  await sync(to, fs);
}

async function sync(path: string, fs: MirrorFs): Promise<void> {
  const entry = await fs.open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await entry.sync();
  } finally {
    await entry.close();
  }
}
