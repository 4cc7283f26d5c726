import { spawn, type ChildProcess } from 'node:child_process';
import { statSync } from 'node:fs';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';

/** How a program ended. */
export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A container as far as GPUs are concerned: programs run in a mount namespace with what the device plugin answered, its
 * mounts and its environment. They see the root file system of this machine.
 */
export class Container {
  readonly pod: string;
  readonly given: GivenContainer;

  constructor(pod: string, given: GivenContainer) {
    this.pod = pod;
    this.given = given;
  }

  /** Starts a program; `unshare` replaces itself by it, so that its pid is the program's. */
  start(command: readonly string[]): ChildProcess {
    const mounts = this.given.mounts.map(({ hostPath, containerPath, readOnly }) => {
      const isDirectory = statSync(hostPath).isDirectory();
      const create = isDirectory
        ? `mkdir -p ${quoted(containerPath)}`
        : `mkdir -p "$(dirname ${quoted(containerPath)})" && touch ${quoted(containerPath)}`;
      const remount = readOnly ? ` && mount -o remount,bind,ro ${quoted(containerPath)}` : '';
      return `{ [ -e ${quoted(containerPath)} ] || { ${create}; }; } && mount --bind ${quoted(hostPath)} ${quoted(containerPath)}${remount}`;
    });
    const script = [...mounts, 'exec "$@"'].join(' && ');
    return spawn('unshare', ['--mount', '--propagation=private', 'sh', '-c', script, 'container', ...command], {
      env: { ...process.env, ...this.given.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs a program to its end, or to the limit. */
  async finish(command: readonly string[], seconds: number): Promise<Outcome> {
    return outcome(this.start(command), seconds);
  }
}

/** Programs whose end is awaited. */
const awaited = new Set<ChildProcess>();

/** Ends all programs whose end is awaited. */
export function endPrograms(): void {
  for (const child of awaited) child.kill('SIGKILL');
}

/** Waits for a program's end; kills it after `seconds`. */
export async function outcome(child: ChildProcess, seconds: number): Promise<Outcome> {
  awaited.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  clearTimeout(timer);
  awaited.delete(child);
  return { status, stdout, stderr };
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
