import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitsWriter } from '../src/agent/slices/limits/limits-writer.js';
import { measured, median, type BenchOptions } from './report.js';
import { SimulatedMachine } from './sim/machine.js';

/** Runs with and without the library alternate, and are short: the machine is then the same for both runs of a pair. */
const PAIRS = 9;
const QUICK_PAIRS = 5;
const WINDOW_MS = 200;
/** The first window of each run, in which streams fill, does not count. */
const WINDOWS = 3;
/** Until all processes of a run have a context and wait for the start signal. */
const LEAD_MS = 200;
const LEAD_MS_EACH = 15;

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
  /** Processes that were not ready at the start signal. */
  readonly late: number;
}

interface Pair {
  readonly hooked: Storm;
  readonly direct: Storm;
}

/**
 * Processes and threads of one container that launch as fast as they can, at share 100: launches a second, compared
 * with the same programs without the control library. Each pair of runs is a sample of every figure: what the rest of
 * the machine does meanwhile changes some pairs, and both runs of a pair alike.
 *
 *     npm run bench -- launch-storm [--quick]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const count = args.includes('--quick') ? QUICK_PAIRS : PAIRS;
  const machine = await SimulatedMachine.open(1);
  try {
    const slice = join(machine.directory, 'slice');
    await mkdir(join(slice, 'usage'), { recursive: true });
    const device = { uuid: machine.uuidOf(0), pciBusId: '', memoryBytes: null, share: 100, softLimit: null };
    (await LimitsWriter.create(join(slice, 'vgpu.limits'), { allocation: 'bench', devices: [device] })).close();
    for (const [crowd, { name: kernels, ns }] of CROWDS.flatMap((each) =>
      KERNELS.map((kernel) => [each, kernel] as const),
    )) {
      const pairs: Pair[] = [];
      while (pairs.length < count) {
        // The second run of a pair may find another state of the machine: the order alternates too.
        const hookedFirst = pairs.length % 2 === 0;
        const first = await storm(machine, crowd, ns, hookedFirst ? slice : null);
        const second = await storm(machine, crowd, ns, hookedFirst ? null : slice);
        pairs.push(hookedFirst ? { hooked: first, direct: second } : { hooked: second, direct: first });
      }
      const name = `${crowd.name}, ${kernels}`;
      for (const { hooked, direct } of pairs) {
        report(measured(`${name}: launches a second`, hooked.launches, '1/s', direct.launches));
        report(measured(`${name}: processor time of a launch`, hooked.costNs, 'ns', direct.costNs));
      }
      const lost = pairs
        .map(({ hooked, direct }) => 100 * (1 - hooked.launches / direct.launches))
        .toSorted((a, b) => a - b);
      const quarter = Math.floor(count / 4);
      const [low = NaN, high = NaN] = [lost[quarter], lost[count - 1 - quarter]];
      const late = pairs.reduce((sum, { hooked, direct }) => sum + hooked.late + direct.late, 0);
      note(
        `${name}: ${median(lost).toFixed(2)} % lost` +
          ` (${count} pairs, the middle half from ${low.toFixed(1)} to ${high.toFixed(1)} %)` +
          (late > 0 ? `; ${late} processes came too late to start with the others` : ''),
      );
    }
  } finally {
    await machine.close();
  }
}

/** One run of all processes. */
async function storm(
  machine: SimulatedMachine,
  { processes, threads }: Crowd,
  kernelNs: number,
  slice: string | null,
): Promise<Storm> {
  const at = process.hrtime.bigint() + BigInt((LEAD_MS + LEAD_MS_EACH * processes) * 1_000_000);
  const args = [at, WINDOWS, WINDOW_MS, kernelNs, threads].map(String);
  const texts = await Promise.all(
    Array.from({ length: processes }, () => machine.finish({ name: 'storm', args, gpu: 0, slice })),
  );
  const outputs = texts.map((text) =>
    text
      .trim()
      .split('\n')
      .map((line) => line.split(' ').map(Number)),
  );
  const counted = outputs.flatMap(([, , ...windows]) => windows);
  const sum = (column: number): number => counted.reduce((total, window) => total + (window[column] ?? 0), 0);
  return {
    launches: (1000 * sum(0)) / (WINDOW_MS * (WINDOWS - 1)),
    costNs: sum(1) / sum(0),
    late: outputs.filter(([late]) => late?.[0] === 1).length,
  };
}
