import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitsWriter } from '../src/agent/slices/limits-writer.js';
import { measured, median, type BenchOptions } from './report.js';
import { SimulatedMachine } from './sim/machine.js';

/** Runs with and without the library alternate; the first second of each run is for starting. */
const ROUNDS = 3;
const SECONDS = 2;
/** The goal: the largest loss. */
const GOAL_PERCENT = 1;

/**
 * As short as kernels of real programs get, when processes wait for room in their streams; and so short that only the
 * launches count.
 */
const KERNELS = [
  { name: 'kernels of 5 us', ns: 5000 },
  { name: 'kernels of 100 ns', ns: 100 },
] as const;

/** Who launches: processes of one container, and threads in each. */
const CROWDS = [
  { name: '8 processes', processes: 8, threads: 1 },
  { name: '16 processes', processes: 16, threads: 1 },
  { name: '64 threads of a process', processes: 1, threads: 64 },
] as const;
type Crowd = (typeof CROWDS)[number];

interface Storm {
  /** Launches that the driver accepts in a second, of all processes. */
  readonly launches: number;
  /** Processor time of one launch. */
  readonly costNs: number;
}

/**
 * Processes and threads of one container that launch as fast as they can, at share 100: launches a second, in the
 * median, compared with the same programs without the control library.
 *
 *     npm run bench -- launch-storm [--quick]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const rounds = args.includes('--quick') ? 2 : ROUNDS;
  const machine = await SimulatedMachine.open(1);
  try {
    const slice = join(machine.directory, 'slice');
    await mkdir(join(slice, 'usage'), { recursive: true });
    const device = { uuid: machine.uuidOf(0), pciBusId: '', memoryBytes: null, share: 100, softLimit: null };
    (await LimitsWriter.create(join(slice, 'vgpu.limits'), { allocation: 'bench', devices: [device] })).close();
    for (const [crowd, { name: kernels, ns }] of CROWDS.flatMap((each) =>
      KERNELS.map((kernel) => [each, kernel] as const),
    )) {
      const name = `${crowd.name}, ${kernels}`;
      const hooked: Storm[] = [];
      const direct: Storm[] = [];
      for (let round = 0; round < rounds; round += 1) {
        // The second run of a pair finds another state of the machine: the order alternates too.
        const first = await storm(machine, crowd, ns, round % 2 === 0 ? slice : null);
        const second = await storm(machine, crowd, ns, round % 2 === 0 ? null : slice);
        hooked.push(...(round % 2 === 0 ? first : second));
        direct.push(...(round % 2 === 0 ? second : first));
      }
      const [ours, theirs] = [
        median(hooked.map(({ launches }) => launches)),
        median(direct.map(({ launches }) => launches)),
      ];
      const lost = 100 * (1 - ours / theirs);
      report(measured(`${name}: launches a second`, ours, '1/s', theirs));
      report(
        measured(
          `${name}: processor time of a launch`,
          median(hooked.map(({ costNs }) => costNs)),
          'ns',
          median(direct.map(({ costNs }) => costNs)),
        ),
      );
      note(
        `${name}: ${lost.toFixed(2)} % lost, ${lost < GOAL_PERCENT ? 'within' : 'MORE than'} the ${GOAL_PERCENT} % allowed`,
      );
    }
  } finally {
    await machine.close();
  }
}

/**
 * One run of all processes, which the machine may delay for some seconds: a figure for each second in which all of them
 * ran.
 */
async function storm(
  machine: SimulatedMachine,
  { processes, threads }: Crowd,
  kernelNs: number,
  slice: string | null,
): Promise<Storm[]> {
  const program = { name: 'storm', args: [String(SECONDS + 1), String(kernelNs), String(threads)], gpu: 0, slice };
  const texts = await Promise.all(Array.from({ length: processes }, () => machine.finish(program)));
  const seconds = texts.map((text) =>
    text
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(' ').map(Number)),
  );
  return Array.from({ length: SECONDS }, (_, at) => {
    const sum = (column: number): number => seconds.reduce((total, lines) => total + (lines[at]?.[column] ?? 0), 0);
    return { launches: sum(0), costNs: sum(1) / sum(0) };
  });
}
