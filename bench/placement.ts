import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { LOADS, replay, type ReplayPolicy } from './openb/replay.js';
import { SCORING_STRATEGIES, type ScoringStrategy } from './openb/scheduler-score.js';
import { readDemands, readNodes } from './openb/trace.js';
import { measured, type BenchOptions } from './report.js';

/**
 * The location of the trace: `--data` or this variable, a folder with the lists and `expected_allocation.csv` as
 * published.
 */
const DATA_VARIABLE = 'GPU_MANAGER_OPENB';
const NODE_LIST = 'openb_node_list_gpu_node.csv';
const POD_LISTS = ['openb_pod_list_default', 'openb_pod_list_gpushare100', 'openb_pod_list_multigpu50'];
const EXPECTED = 'expected_allocation.csv';

/** The names of our policies' counterparts in the published figures; ours is compared with the best of theirs. */
const PUBLISHED: Partial<Record<ReplayPolicy, string>> = {
  fragmentation: '06-FGD',
  'best-fit': '05-BestFit',
  random: '01-Random',
};
const POLICIES = ['random', 'best-fit', 'fragmentation'] as const satisfies readonly ReplayPolicy[];
const ALL_POLICIES: readonly ReplayPolicy[] = [...POLICIES, 'binpack', 'spread', 'topology'];

interface Plan {
  readonly nodes: string;
  readonly pods: readonly string[];
  readonly expected: string | null;
  readonly policies: readonly ReplayPolicy[];
  readonly firstSeed: number;
  readonly lastSeed: number;
  readonly load: number;
  /** The scheduler of pods without GPUs: null for the policy. */
  readonly cpuPods: readonly (ScoringStrategy | null)[];
}

/**
 * GPUs allocated when a stream of pods arrives at a cluster, by policy: the protocol and the figures published with FGD
 * (USENIX ATC 2023).
 *
 *     npm run bench -- placement [--data DIR | --nodes FILE --pods FILE]... [--seeds A..B] [--load P] \
 *         [--policy NAME]... [--cpu-pods extender|least-allocated|most-allocated|mostly-full]... [-o json]
 *
 * `--cpu-pods` selects the scheduler of pods without GPUs: the policy, as when the extender scores every pod, or
 * kube-scheduler with this strategy of NodeResourcesFit.
 */
export async function run(options: BenchOptions): Promise<void> {
  const plan = planOf(options);
  if (typeof plan === 'string') {
    options.note(`skipped: ${plan}`);
    return;
  }
  const nodes = readNodes(plan.nodes);
  const seeds = Array.from({ length: plan.lastSeed - plan.firstSeed + 1 }, (_, at) => plan.firstSeed + at);
  for (const file of plan.pods) {
    const list = basename(file, '.csv');
    const demands = readDemands(file);
    for (const [policy, cpuPods] of plan.policies.flatMap((name) =>
      plan.cpuPods.map((scheduler) => [name, scheduler] as const),
    )) {
      const name = cpuPods === null ? policy : `${policy}, pods without GPU ${cpuPods}`;
      const started = performance.now();
      const runs = seeds.map((seed) => replay(nodes, demands, policy, seed, plan.load, cpuPods));
      const tookMs = performance.now() - started;
      const atLoad = (load: number) => runs.map((run) => run[LOADS.findIndex((known) => known === load)] ?? NaN);
      for (const load of LOADS.filter((known) => known <= plan.load)) {
        const values = atLoad(load);
        const published = cpuPods === null ? publishedMean(plan.expected, list, policy, load) : null;
        if (load === plan.load || load === 90 || options.json) {
          options.report(measured(`${list} ${name} allocated at ${load} %`, mean(values), '%', published));
        }
      }
      const last = atLoad([...LOADS].reverse().find((known) => known <= plan.load) ?? 130);
      options.note(
        `${list} ${name}: ${seeds.length} seeds, ${mean(last).toFixed(2)} % (${Math.min(...last).toFixed(2)} .. ${Math.max(...last).toFixed(2)}), ${(tookMs / seeds.length / 1000).toFixed(1)} s a seed`,
      );
    }
  }
}

/** The lists and policies of a run; a text if nothing can run. */
function planOf(options: BenchOptions): Plan | string {
  const { values } = parseArgs({
    args: [...options.args],
    options: {
      data: { type: 'string' },
      nodes: { type: 'string' },
      pods: { type: 'string', multiple: true },
      seeds: { type: 'string', default: '42..51' },
      load: { type: 'string', default: '130' },
      policy: { type: 'string', multiple: true },
      'cpu-pods': { type: 'string', multiple: true, default: ['extender'] },
      output: { type: 'string', short: 'o' },
    },
  });
  const data = values.data ?? process.env[DATA_VARIABLE];
  const nodes = values.nodes ?? (data === undefined ? undefined : join(data, NODE_LIST));
  const pods = values.pods ?? (data === undefined ? [] : POD_LISTS.map((list) => join(data, `${list}.csv`)));
  if (nodes === undefined || pods.length === 0)
    return `no data: --data DIR, --nodes and --pods, or ${DATA_VARIABLE} name the openb trace`;
  const expected = data === undefined ? null : join(data, EXPECTED);
  const [firstSeed, lastSeed] = (/^(\d+)(?:\.\.(\d+))?$/u.exec(values.seeds) ?? [])
    .slice(1)
    .map((text) => (text === undefined ? undefined : Number(text)));
  if (firstSeed === undefined) throw new Error(`--seeds is "${values.seeds}", not A..B`);
  const policies = (values.policy ?? POLICIES).map((name) => {
    const known = ALL_POLICIES.find((policy) => policy === name);
    if (known === undefined) throw new Error(`--policy is "${name}", not one of ${ALL_POLICIES.join(', ')}`);
    return known;
  });
  const cpuPods = values['cpu-pods'].map((name) => {
    const known = SCORING_STRATEGIES.find((strategy) => strategy === name);
    if (known === undefined && name !== 'extender')
      throw new Error(`--cpu-pods is "${name}", not one of extender, ${SCORING_STRATEGIES.join(', ')}`);
    return known ?? null;
  });
  const load = Number(values.load);
  if (!(load > 0 && load <= 200)) throw new Error(`--load is "${values.load}", not a percentage up to 200`);
  return {
    nodes,
    pods,
    expected: expected !== null && existsSync(expected) ? expected : null,
    policies,
    firstSeed,
    lastSeed: lastSeed ?? firstSeed,
    load,
    cpuPods,
  };
}

/** The published mean; null if there is none for this list, policy and load. */
function publishedMean(file: string | null, list: string, policy: ReplayPolicy, load: number): number | null {
  if (file === null) return null;
  const [header = '', ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/u);
  const column = header.split(',').indexOf(`load_${load}`);
  const row = lines
    .map((line) => line.split(','))
    .find((cells) => cells[0] === list && cells[1] === PUBLISHED[policy] && cells[3] === 'mean');
  const cell = row?.[column];
  return cell === undefined ? null : Number(cell);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
