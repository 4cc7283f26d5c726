import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';

/** What the figures of a run depend on. */
export interface MachineFacts {
  readonly date: string;
  /** The code, as `git describe` names it; null outside a repository. */
  readonly commit: string | null;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
}

/** The properties of the machine that runs this. */
export function machineFacts(): MachineFacts {
  const all = cpus();
  return {
    commit: commitOf(),
    date: new Date().toISOString().slice(0, 10),
    processor: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}

function commitOf(): string | null {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null;
  }
}
