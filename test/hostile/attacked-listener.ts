import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

type Teardown = { teardown(action: () => Promise<void>): void };

/** A listener of a program in a process of its own. */
export interface AttackedListener {
  readonly port: number;
  readonly isTls: boolean;
  /** Paths that cost the program something. */
  readonly paths: readonly string[];
}

export interface RunningListener extends AttackedListener {
  readonly pid: number;
}

/** Starts `listener-program.js NAME`; it ends with the test. */
export async function attackedListener(t: Teardown, name: string): Promise<RunningListener> {
  const { child, first } = await program(t, 'listener-program.js', [name]);
  return { ...(JSON.parse(first) as AttackedListener), pid: child.pid ?? 0 };
}

/** Starts a program of this folder and waits for its first line. */
export async function program(
  t: Teardown,
  name: string,
  args: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly first: string }> {
  const path = fileURLToPath(new URL(`./${name}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  for await (const first of createInterface({ input: child.stdout })) return { child, first };
  throw new Error(`${name} ${args.join(' ')} ended before it was ready`);
}

/** Resident memory of a process. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/u.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN) * 1024;
}

/** Time that the main thread of a process ran, and waited for a CPU, in ms. */
export function cpuTimes(pid: number): { readonly ranMs: number; readonly waitedMs: number } {
  const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number);
  return { ranMs: ran / 1e6, waitedMs: waited / 1e6 };
}

/** Asks for a path on a connection of its own, as the kubelet does. Returns the ms until the whole answer has come. */
export function ask({ port, isTls }: Pick<AttackedListener, 'port' | 'isTls'>, path: string): Promise<number> {
  const startedAt = performance.now();
  const send = isTls ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent: false as const, rejectUnauthorized: false };
    const outgoing = send(options, (response) => {
      response.once('error', reject);
      response.once('end', () => resolve(performance.now() - startedAt)).resume();
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}
