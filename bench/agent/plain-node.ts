import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { residentMib } from './process-cost.js';

/** As often as the agent's steering wakes. */
const WAKES_EVERY_MS = 100;

/** A Node process that wakes ten times a second and does nothing. */
export class WakingNode {
  readonly #child: ChildProcess = spawn(process.execPath, ['-e', `setInterval(() => {}, ${WAKES_EVERY_MS})`], {
    stdio: 'ignore',
  });

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }
}

/** An idle Node process: milliseconds from start to end, and its resident memory. */
export async function emptyNode(): Promise<{ readonly ms: number; readonly residentMib: number }> {
  const begun = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  const ms = performance.now() - begun;
  const waiting = spawn(process.execPath, ['-e', "process.stdin.resume(); process.stdout.write('.')"], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(waiting.stdout, 'data');
  const resident = residentMib(waiting.pid ?? 0);
  const gone = once(waiting, 'exit');
  waiting.stdin.end();
  await gone;
  return { ms, residentMib: resident };
}
