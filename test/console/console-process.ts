import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { MAIN } from '../harness/programs.js';

/** `gpu-manager console` as a process of its own. */
export class ConsoleProcess {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** Starts it; resolves when it listens. */
  static async start(...flags: readonly string[]): Promise<ConsoleProcess> {
    const child = spawn(process.execPath, [MAIN, 'console', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line);
      const port = line.startsWith('{') ? (JSON.parse(line) as { readonly port?: number }).port : undefined;
      if (port === undefined) continue;
      child.stderr.resume();
      return new ConsoleProcess(child, port);
    }
    throw new Error(`the console did not start: ${lines.join('\n')}`);
  }

  /** Its resident memory. */
  get residentBytes(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/u.exec(status)?.[1] ?? NaN) * 1024;
  }

  /** Most of its memory that was ever resident. */
  get peakBytes(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+) kB/u.exec(status)?.[1] ?? NaN) * 1024;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    if (this.#child.exitCode === null && this.#child.kill()) await ended;
  }
}
