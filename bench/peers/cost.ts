import { measured, median, type BenchOptions } from '../report.js';
import { PeerMachine } from './container.js';
import { LIBRARIES, type Library, type Limits } from './library.js';

const ROUNDS = 9;
const BATCHES = '400';
const PAUSE_US = '300';
const TIMEOUT_MS = 60_000;
const LIMITED: Limits = { share: 90, memoryMib: 8192 };
const UNLIMITED: Limits = { share: null, memoryMib: null };

interface Case {
  readonly name: string;
  readonly library: Library;
  readonly limits: Limits;
}

const CASES: readonly Case[] = [
  ...LIBRARIES.map((library): Case => ({ name: library, library, limits: LIMITED })),
  ...(['ours', 'HAMi-core', 'vgpu-manager'] as const).map((library): Case => ({
    name: `${library}, no limits`,
    library,
    limits: UNLIMITED,
  })),
];

/**
 * What a kernel launch and an allocation with its release cost behind each library; the baseline is the driver alone.
 */
export async function cost(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  const launches = new Map<string, number[]>();
  const pairs = new Map<string, number[]>();
  for (let round = 0; round < (quick ? 1 : ROUNDS); round += 1) {
    // Each library meets each phase of the machine.
    for (const { name, library, limits } of [
      ...CASES.slice(round % CASES.length),
      ...CASES.slice(0, round % CASES.length),
    ]) {
      const machine = await PeerMachine.open(peers);
      const container = await machine.container(library, limits);
      const outcome = await container.finish(TIMEOUT_MS, 'cost', BATCHES, PAUSE_US);
      await machine.close();
      if (!outcome.ok) {
        note(`cost, ${name}: ${outcome.why}`);
        continue;
      }
      const [launch = NaN, pair = NaN] = outcome.text.split(' ').map(Number);
      launches.set(name, [...(launches.get(name) ?? []), launch]);
      pairs.set(name, [...(pairs.get(name) ?? []), pair]);
    }
  }
  for (const [what, figures] of [
    ['kernel launch', launches],
    ['allocation and free', pairs],
  ] as const)
    for (const [name, all] of figures)
      report(
        measured(`${what}: ${name}`, median(all), 'ns', name === 'none' ? null : median(figures.get('none') ?? [])),
      );
}
