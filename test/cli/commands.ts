import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROCESS = fileURLToPath(new URL('./command-process.js', import.meta.url));

/** One call of a program; its working directory, its whole environment and its standard input. */
export interface CommandLine {
  readonly program: 'gpu-manager' | 'kubectl-gpu';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly input: string;
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/**
 * Runs command lines in one process that has loaded the programs: most of the time of a command is that of loading it.
 * Signals, closed pipes and the exit code of a process need processes of their own.
 */
export class Commands {
  #child: ChildProcess | null = null;
  #last: Promise<unknown> = Promise.resolve();

  /** Runs a command line after those that were given before. */
  run(line: CommandLine): Promise<Ended> {
    const result = this.#last.then(() => this.#send(line));
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Runs `gpu-manager ARGS...` with the environment and in the folder of the test, unless others are given. */
  gpuManager(
    args: readonly string[],
    given: {
      readonly env?: Readonly<Record<string, string | undefined>>;
      readonly directory?: string;
      readonly input?: string;
    } = {},
  ): Promise<Ended> {
    const { env = {}, directory = process.cwd(), input = '' } = given;
    const all = { ...process.env, ...env } as Record<string, string>;
    return this.run({ program: 'gpu-manager', args, env: all, directory, input });
  }

  async close(): Promise<void> {
    await this.#last;
    const child = this.#child;
    if (child === null || !child.connected) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.disconnect();
    await exited;
  }

  #send(line: CommandLine): Promise<Ended> {
    // What a refused start leaves open, the end of its own process would close; here Node would warn of it.
    const execArgv = [...process.execArgv, '--no-warnings'];
    this.#child ??= fork(PROCESS, { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void =>
        reject(new Error(`${line.program} ${line.args.join(' ')} ended the process with ${code}`));
      child.once('exit', ended);
      child.once('message', (message) => {
        child.off('exit', ended);
        resolve(message as Ended);
      });
      child.send(line);
    });
  }
}
