import { measured, median, type BenchOptions } from '../report.js';
import { PeerMachine, PROGRAM_PATH } from './container.js';
import { LIBRARIES, type Library } from './library.js';

const ROUNDS = 3;
const TIMEOUT_MS = 120_000;
const PROCESSES = [1, 20] as const;
/** Time that a context takes: none, and as on real GPUs. */
const CONTEXT_MS = [0, 200] as const;
/** Room for the contexts of all processes. */
const GPU_MIB = 32_768;
const LIMITS = { share: 50, memoryMib: 16_384 };

/**
 * Until the last of the processes that start at once in one container has a context and ended; baseline: no library.
 */
export async function start(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  note(`Until the last process has a context and ended, median of ${quick ? 1 : ROUNDS} rounds.`);
  for (const contextMs of CONTEXT_MS) {
    const figures = new Map<string, Map<Library, number[]>>();
    for (let round = 0; round < (quick ? 1 : ROUNDS); round += 1) {
      for (const library of round % 2 === 0 ? LIBRARIES : LIBRARIES.toReversed()) {
        for (const processes of PROCESSES) {
          const name = `start of ${processes} ${processes === 1 ? 'process' : 'processes'}, contexts of ${contextMs} ms`;
          const machine = await PeerMachine.open(peers, { memoryMiB: GPU_MIB, contextMs });
          const container = await machine.container(library, LIMITS);
          // The first start of a machine also reads the library from the disk.
          await container.finish(TIMEOUT_MS, 'start');
          const outcome = await container.finish(TIMEOUT_MS, 'many', String(processes), PROGRAM_PATH, 'start');
          await machine.close();
          const [ms = NaN, failed = NaN] = outcome.ok ? outcome.text.split(' ').map(Number) : [];
          if (!outcome.ok) note(`${name}, ${library}: ${outcome.why}`);
          else if (failed > 0) note(`${name}, ${library}: ${failed} processes failed`);
          else {
            const row = figures.get(name) ?? new Map<Library, number[]>();
            figures.set(name, row.set(library, [...(row.get(library) ?? []), ms]));
          }
        }
      }
    }
    for (const [name, row] of figures) {
      const alone = median(row.get('none') ?? []);
      for (const library of LIBRARIES) {
        const all = row.get(library);
        if (all !== undefined) report(measured(name, median(all), 'ms', library === 'none' ? null : alone, library));
      }
    }
  }
}
