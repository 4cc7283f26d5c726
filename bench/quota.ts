import { loadavg } from 'node:os';
import { measureColdStart, measureDurable } from './quota/durable.js';
import { measureInMemory } from './quota/in-memory.js';
import { KUEUE_SETTINGS, replayKueue } from './quota/kueue.js';
import { measured, type BenchOptions } from './report.js';

const GROUPS = 10_000;
const WORKLOADS = 1_000_000;

/**
 * The quota engine with ten thousand groups, eight levels deep, and a million workloads: in memory (baseline: adding up everything below
 * the root), durable (baseline: a commit for each), from a cold start, and with the sizes of Kueue's performance tests (baseline: what
 * Kueue publishes for itself, bound by its requests to the API server).
 *
 *     npm run bench -- quota [WORKLOADS]
 */
export async function run(options: BenchOptions): Promise<void> {
  const { args, report, note } = options;
  const workloads = Number(args[0] ?? WORKLOADS);
  note(`load of this machine before: ${(loadavg()[0] ?? 0).toFixed(1)}`);
  for (const mode of ['carved', 'elastic'] as const) measureInMemory(options, mode, GROUPS, workloads);
  await measureDurable(options, GROUPS);
  await measureColdStart(options, GROUPS, workloads);
  for (const setting of KUEUE_SETTINGS) {
    const { cpuMs, makespanMs, decisions } = replayKueue(setting);
    report(measured(`Kueue's ${setting.name}: CPU`, cpuMs, 'ms', setting.publishedMs));
    note(`${setting.name}: ${decisions} decisions, ${(makespanMs / 1000).toFixed(1)} s of simulated time`);
  }
}
