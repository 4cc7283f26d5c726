import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitsWriter } from '../src/agent/slices/limits/limits-writer.js';
import { measured, median, type BenchOptions } from './report.js';
import { SimulatedMachine } from './sim/machine.js';

const BATCHES = 2000;
/** Each is a sample of every figure: the memory layout of a process changes it by nanoseconds. */
const PROCESSES = 5;
const GIB = 2 ** 30;
const NAMES: Readonly<Record<string, string>> = {
  launch: 'kernel launch',
  allocate: 'allocation and free',
  copy: 'copy on the GPU',
  fill: 'memset',
  'cold-launch': 'kernel launch with cold caches',
  'cold-allocate': 'allocation and free with cold caches',
};
/** Written before each call whose caches are cold: as much as the caches of one core hold. */
const COLD_KIB = 4096;

interface Batch {
  readonly what: string;
  readonly hooked: number;
  readonly direct: number;
}

/** The requests of one container: its limits decide which path a call takes through the library. */
const LIMITS = [
  { name: 'share 90, tokens at hand', share: 90, memoryByDriver: false },
  { name: 'share 100', share: 100, memoryByDriver: false },
  // As behind NRI on a node whose driver keeps memory limits.
  { name: 'share 100, memory by the driver', share: 100, memoryByDriver: true },
  { name: 'share 90, may be suspended', share: 90, memoryByDriver: false, suspendable: true },
] as const;

/**
 * What the control library adds to a call of the driver: batches through it and batches to the simulated driver below
 * it alternate in one process, on one GPU. The value is the call through the library, the baseline the same call to the
 * driver; both are medians over the batches of a process.
 *
 *     npm run bench -- hook
 */
export async function run({ report }: BenchOptions): Promise<void> {
  const machine = await SimulatedMachine.open(1);
  try {
    for (const [index, { name, share, memoryByDriver, ...others }] of LIMITS.entries()) {
      const slice = join(machine.directory, `slice-${index}`);
      await mkdir(join(slice, 'usage'), { recursive: true });
      const device = { uuid: machine.uuidOf(0), pciBusId: '', memoryBytes: 8 * GIB, share, softLimit: null };
      const written = { allocation: 'bench', devices: [device], ...others };
      const limits = await LimitsWriter.create(join(slice, 'vgpu.limits'), written);
      limits.leaveMemory(memoryByDriver);
      limits.close();
      for (let at = 0; at < PROCESSES; at += 1) {
        const text = await machine.finish({
          name: 'hook',
          args: [SimulatedMachine.controlPath, String(BATCHES), String(COLD_KIB)],
          gpu: 0,
          slice,
        });
        const batches = parse(text);
        for (const [what, title] of Object.entries(NAMES)) {
          const all = batches.filter((batch) => batch.what === what);
          const added = median(all.map(({ hooked, direct }) => hooked - direct));
          const direct = median(all.map((batch) => batch.direct));
          report(measured(`${title}, ${name}`, median(all.map(({ hooked }) => hooked)), 'ns', direct));
          report(measured(`added to ${title}, ${name}`, added, 'ns'));
        }
      }
    }
  } finally {
    await machine.close();
  }
}

function parse(text: string): Batch[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', hooked, direct] = line.split(' ');
      return { what, hooked: Number(hooked), direct: Number(direct) };
    });
}
