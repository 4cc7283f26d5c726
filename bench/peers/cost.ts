import { measured, median, type BenchOptions } from '../report.js';
import { PeerMachine } from './container.js';
import { LIBRARIES, type Library, type Limits } from './library.js';

const ROUNDS = 5;
const BATCHES = '400';
const PAUSE_US = '300';
const TIMEOUT_MS = 60_000;
const LIMITED: Limits = { share: 90, memoryMib: 8192 };
const UNLIMITED: Limits = { share: null, memoryMib: null };

interface Case {
  readonly library: Library;
  readonly limits: Limits;
  /** What the name of a figure ends with. */
  readonly suffix: string;
}

const CASES: readonly Case[] = [
  ...LIBRARIES.map((library): Case => ({ library, limits: LIMITED, suffix: '' })),
  ...(['ours', 'HAMi-core', 'vgpu-manager'] as const).map((library): Case => ({
    library,
    limits: UNLIMITED,
    suffix: ', no limits',
  })),
];

/**
 * What a kernel launch and an allocation with its release cost behind each library; the baseline is the driver alone.
 */
export async function cost(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  note(`Time of a call, median of ${quick ? 1 : ROUNDS} rounds; "none" is the driver alone.`);
  /** By the name of the figure, and the library. */
  const figures = new Map<string, Map<Library, number[]>>();
  const add = (name: string, library: Library, value: number): void => {
    const row = figures.get(name) ?? new Map<Library, number[]>();
    figures.set(name, row.set(library, [...(row.get(library) ?? []), value]));
  };
  for (let round = 0; round < (quick ? 1 : ROUNDS); round += 1) {
    // Each library meets each phase of the machine.
    for (const { library, limits, suffix } of [
      ...CASES.slice(round % CASES.length),
      ...CASES.slice(0, round % CASES.length),
    ]) {
      const machine = await PeerMachine.open(peers);
      const container = await machine.container(library, limits);
      const outcome = await container.finish(TIMEOUT_MS, 'cost', BATCHES, PAUSE_US);
      await machine.close();
      if (!outcome.ok) {
        note(`cost${suffix}, ${library}: ${outcome.why}`);
        continue;
      }
      const [launch = NaN, pair = NaN] = outcome.text.split(' ').map(Number);
      add(`kernel launch${suffix}`, library, launch);
      add(`allocation and free${suffix}`, library, pair);
      // The driver alone knows no limits.
      if (library === 'none') {
        add('kernel launch, no limits', library, launch);
        add('allocation and free, no limits', library, pair);
      }
    }
  }
  for (const [name, row] of figures) {
    const alone = median(row.get('none') ?? []);
    for (const library of LIBRARIES) {
      const all = row.get(library);
      if (all !== undefined) report(measured(name, median(all), 'ns', library === 'none' ? null : alone, library));
    }
  }
}
