import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { SimulatedMachine } from './sim/machine.js';
import { serve, type Limits, type Neighbours, type Served } from './sim/neighbours.js';

const SECONDS = 15;
const QUICK_SECONDS = 6;
/** Ten kernels of 200 us each, 30 % of the GPU: the service leaves 70 % to the batch. */
const SERVICE = 'serve:200:10:30';

interface Case extends Omit<Neighbours, 'pattern'> {
  readonly name: string;
}

const SOFT: Limits = { share: 50, softLimit: 100 };
const HARD: Limits = { share: 50, softLimit: null };
const HIGH: Limits = { ...SOFT, priority: 'high' };
const LOW: Limits = { ...SOFT, priority: 'low' };

const CASES: readonly Case[] = [
  { name: 'alone', service: null, batch: 'none', kernelMs: 2 },
  { name: 'alone in its slice', service: SOFT, batch: 'none', kernelMs: 2 },
  { name: 'hard 50/50, 2 ms kernels', service: HARD, batch: HARD, kernelMs: 2 },
  { name: 'equal shares, 2 ms kernels', service: SOFT, batch: SOFT, kernelMs: 2 },
  { name: 'high beside low, 2 ms kernels', service: HIGH, batch: LOW, kernelMs: 2 },
  { name: 'equal shares, 20 ms kernels', service: SOFT, batch: SOFT, kernelMs: 20 },
  { name: 'high beside low, 20 ms kernels', service: HIGH, batch: LOW, kernelMs: 20 },
];

/**
 * What priority gains: a service that answers requests as they arrive, beside a batch that never waits, on one
 * simulated GPU, with slices that the agent makes and steers. Baselines of the same run: the service alone, hard
 * halves, and equal shares that lend their idle time to each other. The simulated GPU gives all of its multiprocessors
 * to one context at a time, in time slices of 2 ms, and interrupts kernels at their end, as GPUs do without MPS.
 *
 *     npm run bench -- priority [--quick] [CASE...]      cases of these names, or whose name contains one of these texts
 */
export async function run({ args, report }: BenchOptions): Promise<void> {
  const seconds = args.includes('--quick') ? QUICK_SECONDS : SECONDS;
  const machine = await SimulatedMachine.open(1);
  const agent = await SteeringAgent.start(machine);
  const results: { readonly one: Case; readonly result: Served }[] = [];
  const wanted = args.filter((argument) => !argument.startsWith('-'));
  const cases = CASES.filter(({ name }) => wanted.length === 0 || wanted.some((text) => isMeant(name, text)));
  try {
    for (const one of cases)
      results.push({ one, result: await serve(machine, agent, { pattern: SERVICE, ...one }, seconds) });
  } finally {
    await agent.stop();
    await machine.close();
  }

  const aloneP99 = results.find(({ one }) => one.name === 'alone')?.result.p99Ms ?? NaN;
  for (const { one, result } of results) {
    const { name, batch, kernelMs } = one;
    report(measured(`${name}: p50 of a request`, result.p50Ms, 'ms'));
    report(measured(`${name}: p99 of a request`, result.p99Ms, 'ms', name === 'alone' ? null : aloneP99));
    report(measured(`${name}: longest request`, result.worstMs, 'ms'));
    if (batch === null || batch === 'none') continue;
    report(measured(`${name}: the batch's part of what the service leaves`, 100 * result.batchPart, '%', 100));
    report(measured(`${name}: GPU at work`, 100 * result.work, '%', 100));
    if (batch.priority === 'low')
      report(measured(`${name}: p99 beyond one kernel of the batch`, result.p99Ms - kernelMs, 'ms', aloneP99));
  }
}

/** The name of a case means this one only. */
function isMeant(name: string, text: string): boolean {
  return CASES.some((one) => one.name === text) ? name === text : name.includes(text);
}
