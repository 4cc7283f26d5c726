import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';

/** A running `hoarder.c`. */
export class Hoarder {
  readonly #child: ChildProcess;
  readonly #lines: Interface;

  constructor(program: string, environment: NodeJS.ProcessEnv) {
    this.#child = spawn(program, { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('no output');
    this.#lines = createInterface(this.#child.stdout);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Gives an order; resolves with the line that answers it. */
  async order(line: 'fill' | 'free' | 'total' | 'managed'): Promise<string> {
    const answer = Promise.race([once(this.#lines, 'line'), once(this.#lines, 'close')]);
    this.#child.stdin?.write(`${line}\n`);
    const [text] = (await answer) as readonly unknown[];
    if (typeof text !== 'string') throw new Error(`the program ended instead of obeying ${line}`);
    return text;
  }

  /** Ends the process and waits for its exit. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
