import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageFile } from '../../src/host/package-files.js';
import { STATE, STATE_VARIABLE } from './cluster.js';

/** Exit code of flock(1) for a lock that another process holds; no test ends with it. */
const TAKEN = 75;
/** Runs of several people, or of one person in several checkouts, at the same time. */
const MOST = 16;

/** The reason why a program cannot run as on a machine of its own here, or null. */
export function whyNoOwnMachine(): string | null {
  if (spawnSync('flock', ['--version']).status !== 0) return 'flock is not installed';
  const namespaces = ['--mount', '--net', '--pid', '--cgroup', '--fork', '--kill-child'];
  const { error, status, stderr } = spawnSync('unshare', [...namespaces, 'true'], { encoding: 'utf8' });
  return status === 0 ? null : `unshare: ${error?.message ?? stderr.trim()}`;
}

/** What a program printed, errors among it, and its exit status. */
interface Ended {
  readonly status: number | null;
  readonly output: string;
}

/**
 * Runs a command on the first machine that nobody uses; each has its own network, processes, control groups and folders
 * (own-machine.sh). With `shown`, what it prints is also shown at once.
 */
export async function runOnOwnMachine(command: readonly string[], shown: boolean): Promise<Ended> {
  mkdirSync(STATE, { recursive: true });
  for (let number = 1; number <= MOST; number += 1) {
    const ended = await runOn(join(STATE, `machine-${number}`), command, shown);
    if (ended.status !== TAKEN) return ended;
  }
  throw new Error(`all ${MOST} machines below ${STATE} are in use; end the other runs`);
}

function runOn(directory: string, command: readonly string[], shown: boolean): Promise<Ended> {
  const locked = ['--nonblock', '--conflict-exit-code', String(TAKEN), '--close', `${directory}.lock`];
  const child = spawn('flock', [...locked, 'sh', packageFile('test/e2e/own-machine.sh'), directory, ...command], {
    env: { ...process.env, [STATE_VARIABLE]: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (shown) process.stdout.write(text);
    });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, output }));
  });
}
