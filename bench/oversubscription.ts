import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { SimulatedMachine } from './sim/machine.js';

const MIB = 2 ** 20;
const BUFFER_MIB = 64;
/** Buffers that fit into the requested memory of each container, beside its context and module. */
const LOW_BUFFERS = 120;
const NEIGHBOUR_BUFFERS = 115;
const CONTEXT_MIB = 320;
const bookedMib = (buffers: number): number => buffers * BUFFER_MIB + CONTEXT_MIB;

const FACTORS = [1, 1.25, 1.5, 2] as const;
const MOST = 2;
/**
 * Kernels by the time that they take for a buffer on the GPU: an A100 needs 33 us to read it once (64 MiB at 2039 GB/s,
 * NVIDIA's data sheet of the A100 80GB SXM); the others compute 10 and 100 times as long.
 */
const KERNELS = [
  { us: 33, name: 'reads its memory once' },
  { us: 330, name: 'computes 10 times as long as it reads' },
  { us: 3300, name: 'computes 100 times as long' },
] as const;
const NEIGHBOUR_US = 200;
const SECONDS = 6;
const QUICK_SECONDS = 2;

interface Outcome {
  readonly refused: number;
  readonly usPerKernel: number;
}

/**
 * The cost of memory beyond the memory limit. A container of memory class low, alone on a simulated GPU, goes through a
 * working set of 1, 1.25, 1.5 and 2 times its limit, with kernels that use their memory more or less often. Its
 * neighbour on the same GPU has the rest of the memory and half of the time, uses both, and frees and allocates all the
 * time. The baselines are the same programs with a working set within the limit.
 *
 *     npm run bench -- oversubscription [--quick]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const seconds = args.includes('--quick') ? QUICK_SECONDS : SECONDS;
  const machine = await SimulatedMachine.open(1);
  const agent = await SteeringAgent.start(machine, MOST);

  async function outcome(slice: string, buffers: number, us: number, renew: boolean): Promise<Outcome> {
    const numbers = [seconds, buffers, BUFFER_MIB, us].map(String);
    const text = await machine.finish({
      name: 'working_set',
      args: [...numbers, ...(renew ? ['renew'] : [])],
      gpu: 0,
      slice,
    });
    const [refused = NaN, kernels = NaN, ns = NaN] = text.trim().split(' ').map(Number);
    return { refused, usPerKernel: ns / 1000 / kernels };
  }

  async function low(factor: number, share: number, us: number): Promise<Outcome> {
    const memoryMib = bookedMib(LOW_BUFFERS);
    const limits = { gpu: 0, share, softLimit: null, memoryBytes: memoryMib * MIB, lowMemoryClass: true };
    const slice = await agent.slice(limits);
    const buffers = LOW_BUFFERS + Math.floor((memoryMib * (factor - 1)) / BUFFER_MIB);
    const result = await outcome(slice, buffers, us, false);
    await agent.remove(slice);
    return result;
  }

  async function neighbour(): Promise<Outcome> {
    const memoryBytes = bookedMib(NEIGHBOUR_BUFFERS) * MIB;
    const slice = await agent.slice({ gpu: 0, share: 50, softLimit: null, memoryBytes });
    const result = await outcome(slice, NEIGHBOUR_BUFFERS, NEIGHBOUR_US, true);
    await agent.remove(slice);
    return result;
  }

  try {
    let refused = 0;
    for (const { us, name } of KERNELS) {
      let baseline = NaN;
      for (const factor of FACTORS) {
        const one = await low(factor, 100, us);
        refused += one.refused;
        if (factor === 1) baseline = one.usPerKernel;
        report(measured(`a kernel that ${name}: ${factor} x what was booked`, one.usPerKernel, 'us', baseline));
      }
    }
    let baseline = NaN;
    let denied = 0;
    for (const factor of FACTORS) {
      const [beside, one] = await Promise.all([neighbour(), low(factor, 50, 330)]);
      denied += beside.refused;
      refused += one.refused;
      if (factor === 1) baseline = beside.usPerKernel;
      report(measured(`the neighbour's kernel beside ${factor} x`, beside.usPerKernel, 'us', baseline));
    }
    report(measured('memory refused to the neighbour, of what it booked', denied, 'allocations'));
    report(measured('memory refused to the container beyond what it booked', refused, 'allocations'));
    note(
      `the working set is ${LOW_BUFFERS} buffers of ${BUFFER_MIB} MiB on the GPU and what is beyond on the host, by turns; the neighbour has half of the GPU's time`,
    );
  } finally {
    await agent.stop();
    await machine.close();
  }
}
