import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { ChildProcess } from 'node:child_process';
import { stop, type SimulatedMachine } from '../sim/machine.js';

/** Measures how long this machine keeps programs from running (native/bench/witness.c). */
export class Witness {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #pids: readonly number[];
  readonly #gone = new AbortController();

  constructor(machine: SimulatedMachine, pids: readonly number[]) {
    this.#pids = pids;
    this.#child = machine.startWitness(pids);
    this.#child.once('exit', () => this.#gone.abort());
    if (this.#child.stdout === null) throw new TypeError('the witness has no output');
    this.#lines = createInterface(this.#child.stdout);
  }

  /** By pid: milliseconds that each program was delayed since the last call. Rejects if the witness has ended. */
  async heldUpMs(): Promise<ReadonlyMap<number, number>> {
    const answer = once(this.#lines, 'line', { signal: this.#gone.signal });
    this.#child.stdin?.write('\n');
    const heldUp = String((await answer)[0])
      .split(' ')
      .map((ns) => Number(ns) / 1e6);
    return new Map(this.#pids.map((pid, index) => [pid, heldUp[index] ?? 0]));
  }

  async close(): Promise<void> {
    await stop(this.#child);
  }
}
