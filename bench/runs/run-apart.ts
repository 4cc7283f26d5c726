import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { removeLeftByEnded } from '../summary/leftovers.js';
import type { StandardRun } from '../summary/standard-runs.js';
import { Recording, type BenchEvent } from './recording.js';
import type { BenchFile } from './run-bench.js';

const PROCESS = fileURLToPath(new URL('bench-process.js', import.meta.url));
/** No benchmark takes this long, also on a slow machine: one that does hangs. */
const LONGEST_MS = 20 * 60_000;
/** What a benchmark has to end in, once it is told to. */
const GRACE_MS = 15_000;

/** What a whole run needs to end a benchmark. */
export interface Apart {
  readonly child: ChildProcess;
  /** Resolves when its process has ended and nothing of it is left. */
  readonly recording: Promise<Recording>;
}

/**
 * Runs a benchmark in a process of its own: whatever happens to it, this process keeps what it told, and what it left
 * is removed.
 */
export function runApart({ name, path }: BenchFile, { runs, args }: StandardRun, json: boolean): Apart {
  const child = fork(PROCESS, [name, path, String(runs), json ? 'json' : 'text', ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  return { child, recording: recorded(name, child) };
}

async function recorded(name: string, child: ChildProcess): Promise<Recording> {
  const recording = new Recording(name);
  child.on('message', (event) => recording.add(event as BenchEvent));
  const hangs = setTimeout(() => {
    recording.add({ kind: 'failure', text: `it did not end in ${LONGEST_MS / 60_000} minutes` });
    endBench(child, 'SIGTERM');
  }, LONGEST_MS);
  // Not `exit`: what it told last may come later.
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(hangs);
  if (!recording.ended) recording.add({ kind: 'failure', text: `it ended with ${signal ?? code}` });
  removeLeftByEnded();
  return recording;
}

/** Tells a benchmark to end, and ends it if it does not. */
export function endBench(child: ChildProcess, signal: NodeJS.Signals): void {
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  child.once('exit', () => clearTimeout(late));
}
