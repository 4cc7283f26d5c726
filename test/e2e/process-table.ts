import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, closeSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { timeLimit } from '../harness/time-factor.js';

interface Recorded {
  readonly pid: number;
  readonly command: string;
  readonly args: readonly string[];
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Of the machine: after a reboot the pid means another process. */
  readonly bootId: string;
}

/** Identifies the current boot of this machine. */
export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Daemons of a test cluster. Each is recorded in a file, so that another process can restart or end it by pid. */
export class ProcessTable {
  readonly #directory: string;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(directory: string, environment: NodeJS.ProcessEnv) {
    this.#directory = directory;
    this.#environment = environment;
    mkdirSync(directory, { recursive: true });
  }

  logOf(name: string): string {
    return join(this.#directory, `${name}.log`);
  }

  /** Throws when a daemon of this name runs: its record would be lost, and with it the means to end it. */
  start(name: string, command: string, args: readonly string[]): void {
    if (this.isAlive(name)) throw new Error(`${name} is running already`);
    this.#spawn(name, command, args);
  }

  #spawn(name: string, command: string, args: readonly string[]): void {
    const startedAt = Date.now();
    const log = openSync(this.logOf(name), 'a');
    const child = spawn(command, args, { detached: true, stdio: ['ignore', log, log], env: this.#environment });
    closeSync(log);
    child.unref();
    if (child.pid === undefined) throw new Error(`${command} did not start`);
    const recorded: Recorded = { pid: child.pid, command, args, startedAt, bootId: bootId() };
    writeFileSync(this.#record(name), JSON.stringify(recorded));
  }

  /** Start time of a daemon, in milliseconds since the epoch. Throws for a daemon that was not started. */
  startedAt(name: string): number {
    const recorded = this.#read(name);
    if (recorded === null) throw new Error(`${name} is not running`);
    return recorded.startedAt;
  }

  /** Throws for a daemon that was not started. */
  pidOf(name: string): number {
    const recorded = this.#read(name);
    if (recorded === null) throw new Error(`${name} is not running`);
    return recorded.pid;
  }

  isAlive(name: string): boolean {
    const recorded = this.#read(name);
    if (recorded === null) return false;
    return runs(recorded.pid);
  }

  /** Ends a daemon and waits for its exit; after 10 s it is killed. */
  async stop(name: string, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const recorded = this.#read(name);
    if (recorded === null) return;
    await end(recorded.pid, signal);
    rmSync(this.#record(name), { force: true });
  }

  /** Ends every recorded daemon, also those of a test that was interrupted. */
  async stopAll(): Promise<void> {
    const records = existsSync(this.#directory) ? readdirSync(this.#directory) : [];
    const names = records.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
    await Promise.all(names.map((name) => this.stop(name)));
  }

  /** Starts a second instance of a daemon beside the first; the returned function ends the first. */
  startBeside(name: string): (signal: NodeJS.Signals) => Promise<void> {
    const recorded = this.#read(name);
    if (recorded === null) throw new Error(`${name} is not running`);
    this.#spawn(name, recorded.command, recorded.args);
    return (signal) => end(recorded.pid, signal);
  }

  /** Ends a daemon and starts it with the same command line. */
  async restart(name: string, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const recorded = this.#read(name);
    if (recorded === null) throw new Error(`${name} is not running`);
    await this.stop(name, signal);
    this.start(name, recorded.command, recorded.args);
  }

  #record(name: string): string {
    return join(this.#directory, `${name}.json`);
  }

  #read(name: string): Recorded | null {
    const path = this.#record(name);
    const recorded = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Recorded) : null;
    return recorded?.bootId === bootId() ? recorded : null;
  }
}

/**
 * Whether any thread of a process exists: a killed process holds its ports until the last of its threads has ended,
 * while its first thread is a zombie already.
 */
function runs(pid: number): boolean {
  try {
    const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return !isZombie || readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}

async function end(pid: number, signal: NodeJS.Signals): Promise<void> {
  if (runs(pid)) process.kill(pid, signal);
  for (let waited = 0; runs(pid); waited += 50) {
    if (waited >= timeLimit(10_000)) process.kill(pid, 'SIGKILL');
    await delay(50);
  }
}
