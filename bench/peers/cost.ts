import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { measured, median, type BenchOptions } from '../report.js';
import { stop } from '../sim/machine.js';
import { PeerMachine, textOf } from './container.js';
import { LIMITERS, type Library, type Limits } from './library.js';

const ROUNDS = 5;
const BATCHES = 200;
const WARM_UP_BATCHES = 20;
const PAUSE_US = '300';
const TIMEOUT_MS = 30_000;

interface Case {
  /** What the name of a figure ends with. */
  readonly suffix: string;
  readonly limits: Limits;
  readonly libraries: readonly Library[];
}

const CASES: readonly Case[] = [
  { suffix: '', limits: { share: 90, memoryMib: 8192 }, libraries: LIMITERS },
  {
    suffix: ', no limits',
    limits: { share: null, memoryMib: null },
    libraries: ['ours', 'HAMi-core', 'vgpu-manager'],
  },
];

/** What the calls of one program cost, in ns. */
interface Cost {
  readonly launch: number;
  readonly pair: number;
}

const CALLS = [
  ['kernel launch', ({ launch }: Cost): number => launch],
  ['allocation and free', ({ pair }: Cost): number => pair],
] as const;

/**
 * What a kernel launch and an allocation with its release cost behind each library. Processors change their speed: so
 * the programs behind all libraries take turns, a batch of calls each, and a figure is the median of the driver alone,
 * the baseline, times the median ratio of two batches of one turn.
 */
export async function cost(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  const rounds = quick ? 1 : ROUNDS;
  note(`Time of a call, from the median ratio to "none", the driver alone: ${rounds} rounds of ${BATCHES} turns.`);
  for (const { suffix, limits, libraries } of CASES) {
    const all: readonly Library[] = ['none', ...libraries];
    const turns: ReadonlyMap<Library, Cost>[] = [];
    for (let round = 0; round < rounds; round += 1)
      turns.push(...(await takeTurns(peers, limits, round % 2 === 0 ? all : all.toReversed(), note)));
    for (const [what, of] of CALLS) {
      const baseline = median(turns.flatMap((turn) => costIn(turn, 'none', of)));
      for (const library of all) {
        const ratios = turns.flatMap((turn) =>
          costIn(turn, library, of).flatMap((own) => costIn(turn, 'none', of).map((direct) => own / direct)),
        );
        if (ratios.length > 0)
          report(
            measured(
              `${what}${suffix}`,
              baseline * median(ratios),
              'ns',
              library === 'none' ? null : baseline,
              library,
            ),
          );
      }
    }
  }
}

const costIn = (turn: ReadonlyMap<Library, Cost>, library: Library, of: (cost: Cost) => number): readonly number[] =>
  [turn.get(library)].flatMap((cost) => (cost === undefined ? [] : [of(cost)]));

/** Starts a program behind each library, and lets them work in turn. */
async function takeTurns(
  peers: string,
  limits: Limits,
  libraries: readonly Library[],
  note: (text: string) => void,
): Promise<readonly ReadonlyMap<Library, Cost>[]> {
  const programs: CostProgram[] = [];
  const turns: ReadonlyMap<Library, Cost>[] = [];
  const failed = new Set<Library>();
  try {
    for (const library of libraries) programs.push(await CostProgram.start(peers, library, limits));
    for (let batch = -WARM_UP_BATCHES; batch < BATCHES; batch += 1) {
      const turn = new Map<Library, Cost>();
      for (const program of programs) {
        if (failed.has(program.library)) continue;
        const outcome = await program.work();
        if (typeof outcome !== 'string') {
          turn.set(program.library, outcome);
          continue;
        }
        failed.add(program.library);
        note(`cost, ${program.library}: ${outcome}`);
      }
      if (batch >= 0) turns.push(turn);
    }
  } finally {
    for (const program of programs) await program.end();
  }
  return turns;
}

/** A program behind a library, on a machine of its own, that makes a batch of calls when it is told to. */
class CostProgram {
  readonly library: Library;
  readonly #machine: PeerMachine;
  readonly #child: ChildProcess;
  readonly #answers: Interface;
  readonly #errors: Promise<string>;

  private constructor(library: Library, machine: PeerMachine, child: ChildProcess) {
    this.library = library;
    this.#machine = machine;
    this.#child = child;
    if (child.stdout === null) throw new Error('the program has no output');
    this.#answers = createInterface({ input: child.stdout });
    this.#errors = textOf(child.stderr);
  }

  static async start(peers: string, library: Library, limits: Limits): Promise<CostProgram> {
    const machine = await PeerMachine.open(peers);
    const container = await machine.container(library, limits);
    return new CostProgram(library, machine, container.start('cost', PAUSE_US));
  }

  /** One batch; or why it failed. */
  async work(): Promise<Cost | string> {
    const leave = new AbortController();
    const { signal } = leave;
    try {
      const line = once(this.#answers, 'line', { signal }).then(([text]) => String(text));
      const ended = once(this.#answers, 'close', { signal }).then(() => null);
      const late = sleep(TIMEOUT_MS, undefined, { signal });
      this.#child.stdin?.write('\n');
      const answer = await Promise.race([line, ended, late]);
      if (answer === undefined) return `no answer after ${TIMEOUT_MS / 1000} s`;
      if (answer === null) return (await this.#errors).trim().split('\n').at(-1) ?? '';
      const [launch = NaN, pair = NaN] = answer.split(' ').map(Number);
      return { launch, pair };
    } finally {
      leave.abort();
    }
  }

  async end(): Promise<void> {
    await stop(this.#child);
    await this.#machine.close();
  }
}
