import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { relative, resolve } from 'node:path';

/** What the figures of a run depend on. */
export interface MachineFacts {
  readonly date: string;
  /** The code: see `commitOf`. */
  readonly commit: string | null;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
}

/** The properties of the machine that runs this, and of its code apart from the folder of reports. */
export function machineFacts(reports: string): MachineFacts {
  const all = cpus();
  return {
    commit: commitOf(reports),
    date: new Date().toISOString().slice(0, 10),
    processor: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}

/**
 * The commit of the repository around a folder, with `-dirty` where files that it tracks have changed: apart from those
 * in the folder of reports, which a run itself changes. Null outside a repository.
 */
export function commitOf(reports: string, folder = process.cwd()): string | null {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const commit = git('describe', '--always', '--exclude=*');
    const within = relative(git('rev-parse', '--show-toplevel'), resolve(folder, reports));
    const except = within === '' || within.startsWith('..') ? [] : [`:(top,exclude)${within}`];
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', ':(top)', ...except);
    return changed === '' ? commit : `${commit}-dirty`;
  } catch {
    return null;
  }
}
