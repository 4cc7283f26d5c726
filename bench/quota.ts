import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureColdStart, measureDurable } from './quota/durable.js';
import { measureInMemory } from './quota/in-memory.js';
import { KUEUE_SETTINGS, replayKueue } from './quota/kueue.js';
import { measured, type BenchOptions } from './report.js';

const GROUPS = 10_000;
const WORKLOADS = 1_000_000;
const LOOK_UPS = 20_000;

/**
 * The quota engine with ten thousand groups, eight levels deep, and a million workloads: in memory (baseline: adding up
 * everything below the root), durable (baseline: a commit for each), from a cold start, and with the sizes of Kueue's
 * performance tests (baseline: Kueue's published figures, limited by its requests to the API server).
 *
 *     npm run bench -- quota [--groups N] [WORKLOADS]
 */
export async function run(options: BenchOptions): Promise<void> {
  const { args, report, note } = options;
  const { groups, workloads } = sizeOf(args);
  note(`load of this machine before: ${(loadavg()[0] ?? 0).toFixed(1)}`);
  report(measured('this machine: a look-up among a million names', lookUpUs(), 'us'));
  for (const mode of ['carved', 'elastic'] as const) measureInMemory(options, mode, groups, workloads);
  await measureDurable(options, groups);
  await measureColdStart(options, groups, workloads);
  for (const setting of KUEUE_SETTINGS) {
    const { cpuMs, makespanMs, decisions } = replayKueue(setting);
    report(measured(`Kueue's ${setting.name}: CPU`, cpuMs, 'ms', setting.publishedMs));
    note(`${setting.name}: ${decisions} decisions, ${(makespanMs / 1000).toFixed(1)} s of simulated time`);
  }
}

/** How many groups and workloads to measure; a group has a hundred workloads unless both are given. */
function sizeOf(args: readonly string[]): { readonly groups: number; readonly workloads: number } {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { groups: { type: 'string' } },
    allowPositionals: true,
  });
  const groups = countOf('--groups', values.groups, GROUPS);
  return { groups, workloads: countOf('WORKLOADS', positionals[0], (WORKLOADS / GROUPS) * groups) };
}

function countOf(name: string, text: string | undefined, otherwise: number): number {
  const count = Number(text ?? otherwise);
  if (!(Number.isSafeInteger(count) && count > 0))
    throw new Error(`${name}: expected a whole number above 0, found "${text ?? ''}"`);
  return count;
}

/**
 * The elementary operation by which to read the other figures: it takes ten times as long when other programs use the
 * machine's memory too.
 */
function lookUpUs(): number {
  const names = new Map(
    Array.from({ length: 1_000_000 }, (_, at) => [`Deployment.apps/team-${at % 977}/service-${at}`, at]),
  );
  const asked = Array.from({ length: LOOK_UPS }, (_, at) =>
    ['Deployment.apps', `team-${(at * 49) % 977}`, `service-${at * 49}`].join('/'),
  );
  const started = performance.now();
  let found = 0;
  for (const name of asked) found += names.has(name) ? 1 : 0;
  if (found !== asked.length) throw new Error('a name is missing');
  return ((performance.now() - started) / LOOK_UPS) * 1000;
}
