import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitsWriter } from '../src/agent/slices/limits/limits-writer.js';
import { measured, median, type BenchOptions } from './report.js';
import { SimulatedMachine } from './sim/machine.js';

const PROCESSES = [1, 20, 200] as const;
/** Runs with and without the library alternate. */
const ROUNDS = 5;
/** Until all processes of a run wait for the start signal. */
const LEAD_MS = 500;
const LEAD_MS_EACH = 25;
const GIB = 2 ** 30;
/** Room for the contexts of all processes, 256 MiB each. */
const GPU_BYTES = 64 * GIB;

/** Of one process: from the common start until it has a context, in ms. */
interface Start {
  readonly ms: number;
  /** Of that time: until the driver's library was loaded, and from there until cuInit returned. */
  readonly loadMs: number;
  readonly initMs: number;
  readonly late: boolean;
}

/**
 * How long processes of one container take that start with the GPU at the same time: they load the library, call cuInit
 * and make a context, with the control library and with the simulated driver alone. The median over all processes, and
 * the last one of each run.
 *
 *     npm run bench -- start [--quick]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const rounds = args.includes('--quick') ? 1 : ROUNDS;
  const machine = await SimulatedMachine.open(1, { memoryMiB: GPU_BYTES / 2 ** 20 });
  try {
    const slice = join(machine.directory, 'slice');
    await mkdir(join(slice, 'usage'), { recursive: true });
    const device = { uuid: machine.uuidOf(0), pciBusId: '', memoryBytes: GPU_BYTES, share: 50, softLimit: null };
    (await LimitsWriter.create(join(slice, 'vgpu.limits'), { allocation: 'bench', devices: [device] })).close();
    for (const processes of PROCESSES) {
      const hooked: Start[][] = [];
      const direct: Start[][] = [];
      for (let round = 0; round < rounds; round += 1) {
        const [first, second] = round % 2 === 0 ? [slice, null] : [null, slice];
        (first === null ? direct : hooked).push(await startAll(machine, processes, first));
        (second === null ? direct : hooked).push(await startAll(machine, processes, second));
      }
      const name = `${processes} ${processes === 1 ? 'process' : 'processes'} at once`;
      const of = (runs: Start[][], part: (start: Start) => number): number => median(runs.flat().map(part));
      const last = (runs: Start[][]): number => median(runs.map((starts) => Math.max(...starts.map(({ ms }) => ms))));
      for (const [what, part] of [
        ['until it has a context', ({ ms }: Start): number => ms],
        ['the library loaded', ({ loadMs }: Start): number => loadMs],
        ['cuInit', ({ initMs }: Start): number => initMs],
      ] as const)
        report(measured(`${name}: ${what}`, of(hooked, part), 'ms', of(direct, part)));
      report(measured(`${name}: the last one`, last(hooked), 'ms', last(direct)));
      const late = [...hooked, ...direct].flat().filter((start) => start.late).length;
      const added = of(hooked, ({ ms }) => ms) - of(direct, ({ ms }) => ms);
      note(
        `${name}: ${added.toFixed(2)} ms added${late > 0 ? `; ${late} processes came too late to start with the others` : ''}`,
      );
    }
  } finally {
    await machine.close();
  }
}

async function startAll(machine: SimulatedMachine, processes: number, slice: string | null): Promise<Start[]> {
  const at = process.hrtime.bigint() + BigInt((LEAD_MS + LEAD_MS_EACH * processes) * 1_000_000);
  const program = { name: 'start', args: [at.toString()], gpu: 0, slice };
  const lines = await Promise.all(Array.from({ length: processes }, () => machine.finish(program)));
  return lines.map((line) => {
    const [loaded = NaN, initialised = NaN, context = NaN, late] = line.trim().split(' ').map(Number);
    return { ms: context / 1e6, loadMs: loaded / 1e6, initMs: (initialised - loaded) / 1e6, late: late === 1 };
  });
}
