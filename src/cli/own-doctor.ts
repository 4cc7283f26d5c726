import { execFile } from 'node:child_process';
import type { Diagnosis } from '../agent/doctor/diagnosis.js';
import type { Clock } from '../host/clock.js';

/** Time limit of the checks, and how long their result is good for further readers. */
const TIMEOUT_MS = 50_000;
const GOOD_MS = 10_000;

/**
 * Runs `doctor` with the agent's flags in a process of its own, so that its checks cannot disturb the agent. Callers
 * share one run at a time. The function rejects if the process fails.
 */
export function ownDoctor(
  flags: Readonly<Record<string, string>>,
  clock: Clock,
  main: string = process.argv[1] ?? '',
): () => Promise<readonly Diagnosis[]> {
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  let last: { readonly startedAt: number; readonly result: Promise<readonly Diagnosis[]> } | null = null;
  let running = false;
  return () => {
    if (last !== null && (running || clock.now() - last.startedAt < GOOD_MS)) return last.result;
    running = true;
    const result = diagnose([...process.execArgv, main, 'doctor', '--output=json', ...args]).finally(
      () => (running = false),
    );
    last = { startedAt: clock.now(), result };
    return result;
  };
}

function diagnose(args: readonly string[]): Promise<readonly Diagnosis[]> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      // The doctor exits with 1 if a check failed, after printing all of them.
      try {
        resolve(JSON.parse(stdout) as readonly Diagnosis[]);
      } catch {
        const lines = stderr.trim().split('\n');
        reject(new Error(`the doctor printed no result: ${lines.at(-1) || (error?.message ?? 'nothing')}`));
      }
    });
  });
}
