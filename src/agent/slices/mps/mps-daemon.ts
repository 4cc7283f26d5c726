import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../host/clock.js';
import { openEndlessInput } from '../../../host/endless-input.js';
import type { Log } from '../../../host/log.js';
import { wait } from '../../../host/pause.js';
import { MpsError, type MpsControl, type MpsState } from './mps-control.js';

/** How long a daemon may take until it answers its first command. */
const START_MS = 5_000;
const POLL_MS = 25;
/** Pause between two starts, which doubles up to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A daemon that ran for so long failed for another reason than the one before. */
const STABLE_MS = 60_000;

/**
 * The MPS control daemon of this node, in the foreground of a process that outlives the agent: programs of containers
 * lose their GPU with it. The agent finds it again by its pipe directory.
 */
export class MpsDaemon {
  readonly #control: MpsControl;
  readonly #clock: Clock;
  readonly #log: Log;
  #startedAtMs = -Infinity;
  #pauseMs = 0;
  #failure: string | null = null;

  constructor(control: MpsControl, clock: Clock, log: Log) {
    this.#control = control;
    this.#clock = clock;
    this.#log = log;
  }

  /** What a running daemon has; `started`: it was started by this call. Rejects if it cannot be started now. */
  async ensure(): Promise<{ readonly state: MpsState; readonly started: boolean }> {
    const state = await this.#control.state();
    if (state !== null) return { state, started: false };
    const now = this.#clock.now();
    if (now < this.#startedAtMs + this.#pauseMs)
      throw new MpsError(`the MPS control daemon does not run: ${this.#failure ?? 'it ended'}; the agent retries`);
    if (now >= this.#startedAtMs + STABLE_MS) this.#pauseMs = 0;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs));
    this.#startedAtMs = now;
    try {
      return { state: await this.#start(), started: true };
    } catch (error) {
      this.#failure = (error as Error).message;
      throw error;
    }
  }

  async #start(): Promise<MpsState> {
    const { program, directory, environment } = this.#control;
    mkdirSync(join(directory, 'log'), { recursive: true });
    const input = openEndlessInput(join(directory, 'input'));
    const output = openSync(join(directory, 'log', 'daemon.log'), 'a', 0o600);
    let ended: string | null = null;
    try {
      // Several users: containers run programs of any.
      const child = spawn(program, ['-f', '-p', '3', '-m'], {
        stdio: [input, output, output],
        env: environment,
        detached: true,
      });
      child.on('error', (error) => (ended = error.message));
      child.on('exit', (code, signal) => {
        ended = `it ended with ${signal ?? code ?? 'an unknown code'}`;
        this.#log.warn({ code, signal }, 'the MPS control daemon ended');
      });
      child.unref();
    } finally {
      closeSync(input);
      closeSync(output);
    }
    for (let waitedMs = 0; waitedMs < START_MS; waitedMs += POLL_MS) {
      if (ended !== null)
        throw new MpsError(`${program} does not run: ${String(ended)}; its log is in ${directory}/log`);
      const state = await this.#control.state();
      if (state !== null) {
        this.#log.info({ program, directory }, 'the MPS control daemon runs');
        return state;
      }
      await wait(this.#clock, POLL_MS);
    }
    throw new MpsError(`${program} does not answer; its log is in ${directory}/log`);
  }

  /** Ends the daemon, if it runs: nobody needs it, and a driver cannot be replaced while it runs. */
  async quit(): Promise<void> {
    if ((await this.#control.state()) === null) return;
    await this.#control.quit();
    this.#startedAtMs = -Infinity;
    this.#pauseMs = 0;
    this.#log.info('the MPS control daemon has ended: no container shares multiprocessors');
  }
}
