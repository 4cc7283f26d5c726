import type { Ran } from '../summary/regressions.js';
import type { BenchResult } from '../summary/bench-result.js';
import type { StandardRun } from '../summary/standard-runs.js';
import { endBench, runApart, type Apart } from './run-apart.js';
import type { BenchFile } from './run-bench.js';

/** What was measured until now. */
export interface Measured {
  readonly ran: readonly Ran[];
  readonly results: readonly BenchResult[];
}

export const NOTHING: Measured = { ran: [], results: [] };

/** Several benchmarks, one after another, each in a process of its own. */
export class WholeRun {
  readonly #standardOf: (name: string) => StandardRun;
  readonly #json: boolean;
  #current: Apart | null = null;
  #signal: NodeJS.Signals | null = null;

  constructor(standardOf: (name: string) => StandardRun, json: boolean) {
    this.#standardOf = standardOf;
    this.#json = json;
  }

  /** The signal that ended it early; null: none did. */
  get signal(): NodeJS.Signals | null {
    return this.#signal;
  }

  /** Ends the benchmark that runs, and begins no other. */
  end(signal: NodeJS.Signals): void {
    this.#signal ??= signal;
    if (this.#current !== null) endBench(this.#current.child, signal);
  }

  /**
   * Runs those of `benches` that `kept` does not have, and yields all that was measured after each of them. One that
   * fails does not keep the others from being measured.
   */
  async *measure(benches: readonly BenchFile[], kept: Measured): AsyncGenerator<Measured> {
    let measured = kept;
    for (const file of benches) {
      const bench = file.name;
      if (measured.ran.some((each) => each.bench === bench)) continue;
      if (this.#signal !== null) return;
      const began = performance.now();
      this.#current = runApart(file, this.#standardOf(bench), this.#json);
      const { results, failure } = await this.#current.recording;
      this.#current = null;
      const seconds = Math.round((performance.now() - began) / 1_000);
      console.error(`${bench} ${failure === null ? 'took' : `failed: ${failure}; it took`} ${seconds} s`);
      const sections = results.map((result) => result.bench);
      measured = {
        ran: [...measured.ran, { bench, seconds, failure, sections }],
        results: [...measured.results, ...results],
      };
      yield measured;
    }
  }
}

/** What an earlier run measured without a failure. */
export function withoutFailures({ ran, results }: Measured): Measured {
  const kept = ran.filter(({ failure }) => failure === null);
  const sections = new Set(kept.flatMap((each) => each.sections));
  return { ran: kept, results: results.filter(({ bench }) => sections.has(bench)) };
}
