import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Path of a program, null where the machine has none of that name. */
export function findProgram(name: string): string | null {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return directories.map((directory) => join(directory, name)).find((path) => existsSync(path)) ?? null;
}

/** Reason why no container daemon can start here; false where one can. */
export function daemonSkipReason(...programs: readonly string[]): string | false {
  if (process.getuid?.() !== 0) return 'starting a container daemon needs root';
  const missing = programs.filter((program) => findProgram(program) === null);
  return missing.length > 0 ? `needs ${missing.join(' and ')}` : false;
}

/** A daemon that a test started: it listens on a unix socket, and is stopped together with its children. */
export class Daemon {
  readonly socket: string;
  readonly #command: readonly string[];
  readonly #log: string;
  readonly #ready: () => Promise<unknown>;
  #process: ChildProcess | null = null;

  /** `ready` resolves when the daemon answers, and rejects while it does not yet. */
  constructor(socket: string, command: readonly string[], log: string, ready: () => Promise<unknown>) {
    this.socket = socket;
    this.#command = command;
    this.#log = log;
    this.#ready = ready;
  }

  async start(): Promise<void> {
    const [program = '', ...options] = this.#command;
    const log = createWriteStream(this.#log, { flags: 'a' });
    const child = spawn(findProgram(program) ?? program, options, { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    this.#process = child;
    for (let attempt = 0; attempt < 300; attempt += 1) {
      if (child.exitCode !== null) break;
      if (
        await this.#ready().then(
          () => true,
          () => false,
        )
      )
        return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`${program} did not start:\n${readFileSync(this.#log, 'utf8').slice(-2000)}`);
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  }
}

/** Unmounts what a daemon left mounted below a directory, so that the directory can be removed. */
export function unmountBelow(directory: string): void {
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${directory}/`));
  for (const path of mounted.reverse()) spawnSync('umount', ['-l', path]);
}

/** Removes a tree of empty control groups from every hierarchy. */
export function removeCgroups(path: string): void {
  const mounts = ['', ...readdirSync('/sys/fs/cgroup')].map((mount) => join('/sys/fs/cgroup', mount, path));
  for (const directory of mounts) if (existsSync(directory)) removeBelow(directory);
}

function removeBelow(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) removeBelow(join(directory, entry.name));
  rmdirSync(directory);
}
