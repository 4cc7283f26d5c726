import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const CHANNEL = fileURLToPath(new URL('loop-meter-channel.js', import.meta.url));

/** A command of gpu-manager as a process of its own whose event loop is measured. */
export class MeteredProgram {
  readonly #child: ChildProcess;
  /** Its last log lines, for the message of a failed test. */
  readonly #log: string[] = [];

  constructor(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, ['--import', CHANNEL, MAIN, ...args], {
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

  /** The longest turn of its event loop while `task` ran, in milliseconds of CPU time of a usual machine. */
  async longestTurn(task: () => Promise<void>): Promise<number> {
    await this.#tell('start');
    await task();
    return this.#tell('stop');
  }

  /** Ends it at once: a program in a long turn would not hear a request to stop. */
  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    if (this.isRunning && this.#child.kill('SIGKILL')) await ended;
  }

  async #tell(order: 'start' | 'stop'): Promise<number> {
    if (!this.isRunning) throw new Error(`the program has ended:\n${this.log}`);
    const replied = once(this.#child, 'message');
    this.#child.send(order);
    return ((await replied) as [number])[0];
  }
}
