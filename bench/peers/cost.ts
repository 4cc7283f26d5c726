import { measured, median, type BenchOptions } from '../report.js';
import { PeerMachine } from './container.js';
import { LIMITERS, type Library, type Limits } from './library.js';

const ROUNDS = 5;
const BATCHES = '200';
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
  ...LIMITERS.map((library): Case => ({ library, limits: LIMITED, suffix: '' })),
  ...(['ours', 'HAMi-core', 'vgpu-manager'] as const).map((library): Case => ({
    library,
    limits: UNLIMITED,
    suffix: ', no limits',
  })),
];

/** What the calls of one program cost, in ns. */
interface Cost {
  readonly launch: number;
  readonly pair: number;
}

/**
 * What a kernel launch and an allocation with its release cost behind each library. Processors change their speed: so
 * the driver alone, the baseline, is measured right before each library, and a figure is the baseline's median times
 * the median of the ratios.
 */
export async function cost(peers: string, quick: boolean, { report, note }: BenchOptions): Promise<void> {
  const rounds = quick ? 1 : ROUNDS;
  note(`Time of a call, from the median ratio of ${rounds} rounds to "none", the driver alone right before.`);
  const alone: Cost[] = [];
  const ratios = new Map<Case, Cost[]>(CASES.map((each) => [each, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const each of round % 2 === 0 ? CASES : CASES.toReversed()) {
      const direct = await costOf(peers, { ...each, library: 'none' }, note);
      const hooked = await costOf(peers, each, note);
      if (direct === null || hooked === null) continue;
      alone.push(direct);
      ratios.get(each)?.push({ launch: hooked.launch / direct.launch, pair: hooked.pair / direct.pair });
    }
  }
  for (const [what, of] of [
    ['kernel launch', ({ launch }: Cost): number => launch],
    ['allocation and free', ({ pair }: Cost): number => pair],
  ] as const) {
    const baseline = median(alone.map(of));
    for (const suffix of new Set(CASES.map((each) => each.suffix))) {
      report(measured(`${what}${suffix}`, baseline, 'ns', null, 'none'));
      for (const [{ library, suffix: own }, all] of ratios)
        if (own === suffix && all.length > 0)
          report(measured(`${what}${suffix}`, baseline * median(all.map(of)), 'ns', baseline, library));
    }
  }
}

async function costOf(
  peers: string,
  { library, limits, suffix }: Case,
  note: (text: string) => void,
): Promise<Cost | null> {
  const machine = await PeerMachine.open(peers);
  try {
    const container = await machine.container(library, limits);
    const outcome = await container.finish(TIMEOUT_MS, 'cost', BATCHES, PAUSE_US);
    if (outcome.ok) {
      const [launch = NaN, pair = NaN] = outcome.text.split(' ').map(Number);
      return { launch, pair };
    }
    note(`cost${suffix}, ${library}: ${outcome.why}`);
    return null;
  } finally {
    await machine.close();
  }
}
