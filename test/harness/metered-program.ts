import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { MAIN } from './programs.js';

/** Flags of Node that measure the event loop of a program with a channel to this process; see `longestTurn`. */
export const LOOP_METER: readonly string[] = [
  '--import',
  fileURLToPath(new URL('loop-meter-channel.js', import.meta.url)),
];

/**
 * The longest turn of a program's event loop while `task` ran, in milliseconds of CPU time of a usual machine. The
 * program was started with the flags `LOOP_METER` and a channel.
 */
export async function longestTurn(program: ChildProcess, task: () => Promise<void>): Promise<number> {
  await tell(program, 'start');
  await task();
  return tell(program, 'stop');
}

async function tell(program: ChildProcess, order: 'start' | 'stop'): Promise<number> {
  const replied = once(program, 'message');
  program.send(order);
  return ((await replied) as [number])[0];
}

/** A command of gpu-manager as a process of its own whose event loop is measured. */
export class MeteredProgram {
  readonly #child: ChildProcess;
  /** Its last log lines, for the message of a failed test. */
  readonly #log: string[] = [];

  constructor(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, [...LOOP_METER, MAIN, ...args], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, ...environment },
    });
    if (this.#child.stderr !== null)
      createInterface({ input: this.#child.stderr }).on('line', (line) => {
        this.#log.push(line);
        if (this.#log.length > 50) this.#log.shift();
      });
  }

  get log(): string {
    return this.#log.join('\n');
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The longest turn of its event loop while `task` ran; see the function of this name. */
  longestTurn(task: () => Promise<void>): Promise<number> {
    if (!this.isRunning) throw new Error(`the program has ended:\n${this.log}`);
    return longestTurn(this.#child, task);
  }

  /** Ends it at once: a program in a long turn would not hear a request to stop. */
  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    if (this.isRunning && this.#child.kill('SIGKILL')) await ended;
  }
}
