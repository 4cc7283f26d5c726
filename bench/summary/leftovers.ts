import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unmount } from '../../src/host/mounts.js';

/** Folders of benchmarks are named after the process; short, because socket paths below them are limited. */
const PREFIX = 'gmb-';
const OF_A_BENCHMARK = /^gmb-(\d+)-/u;
/** State of simulated machines is shared memory: on a memory file system it is never written to a disk. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
/** Temporary files of the machine; this process and those that it starts use a folder in it. */
const TEMPORARY = tmpdir();

/** A folder of this process in memory. */
export function memoryDirectory(): string {
  return mkdtempSync(join(MEMORY, `${PREFIX}${process.pid}-`));
}

/**
 * Gives this process, and all that it starts, a folder of its own for temporary files, and removes what benchmarks left
 * that have ended. However this process ends, all that it has started ends before.
 */
export function keepTogether(): void {
  removeLeftByEnded();
  const own = mkdtempSync(join(TEMPORARY, `${PREFIX}${process.pid}-`));
  process.env['TMPDIR'] = own;
  process.once('exit', () => {
    removeLeftovers();
    removeFolder(own);
  });
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.on(signal, () => process.exit(status));
}

/** Ends the programs and removes the files of benchmarks that were killed. */
export function removeLeftByEnded(): void {
  for (const [parent, name, pid] of foldersOfBenchmarks()) {
    if (existsSync(`/proc/${pid}`)) continue;
    for (const program of programsWith(`/${PREFIX}${pid}-`)) kill(program);
    removeFolder(join(parent, name));
  }
}

/** Ends the programs and removes the files that this process has left; names them. */
export function removeLeftovers(): readonly string[] {
  const left: string[] = [];
  for (const pid of descendantsOf(process.pid)) {
    left.push(`the process ${pid} (${commandOf(pid)})`);
    kill(pid);
  }
  for (const [parent, name, pid] of foldersOfBenchmarks()) {
    if (pid !== process.pid) continue;
    const path = join(parent, name);
    const all = path === process.env['TMPDIR'] ? readdirSync(path).map((file) => join(path, file)) : [path];
    for (const one of all) removeFolder(one);
    left.push(...all);
  }
  return left;
}

function foldersOfBenchmarks(): (readonly [parent: string, name: string, pid: number])[] {
  return [...new Set([TEMPORARY, MEMORY])].flatMap((parent) =>
    readdirSync(parent).flatMap((name) => {
      const pid = OF_A_BENCHMARK.exec(name)?.[1];
      return pid === undefined ? [] : [[parent, name, Number(pid)] as const];
    }),
  );
}

/** Unmounts everything below a folder, and removes it. */
export function removeFolder(directory: string): void {
  for (const path of mountsBelow(directory)) unmount(path);
  // A program that was ended just now may have written a last file meanwhile.
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}

/** The mount points below a directory, the innermost first. */
function mountsBelow(directory: string): string[] {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  return points.filter((point) => `${point}/`.startsWith(`${directory}/`)).toReversed();
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** The processes whose environment names this part of a path: what a benchmark starts knows the benchmark's folders. */
function programsWith(part: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/u.test(name) || Number(name) === process.pid) return [];
    try {
      return readFileSync(`/proc/${name}/environ`, 'latin1').includes(part) ? [Number(name)] : [];
    } catch {
      // It has ended meanwhile, or belongs to another user.
      return [];
    }
  });
}

/** The processes that a process has started, and those that they have started. */
function descendantsOf(pid: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const parent = parentOf(name);
    if (parent !== null) childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
  }
  const all = (of: number): number[] => (childrenOf.get(of) ?? []).flatMap((child) => [child, ...all(child)]);
  return all(pid);
}

/** The parent of a process; null for what is no process, or has ended. */
function parentOf(name: string): number | null {
  if (!/^\d+$/u.test(name)) return null;
  try {
    const [, state = '', parent = ''] = /\) (\S) (\d+) /u.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? [];
    return state === 'Z' || state === '' ? null : Number(parent);
  } catch {
    return null;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(0, 3).join(' ').trim();
  } catch {
    return 'ended';
  }
}
