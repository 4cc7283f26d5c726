import { setTimeout as sleep } from 'node:timers/promises';
import { referenceMs } from '../test/harness/reference-work.js';
import { BenchNode } from './agent/node.js';
import { ShippedAgent } from './agent/shipped-agent.js';
import { cpuSeconds, residentMib } from './agent/process-cost.js';
import { emptyNode, WakingNode } from './agent/plain-node.js';
import { measured, type BenchOptions } from './report.js';
import { connectPlugin } from './sim/plugin-client.js';

const GPUS = 8;
const COUNTS = [8, 64, 256] as const;
/** A part of a GPU small enough for 32 containers on each. */
const PART = { cores: 3, memoryBlocks: 2 };
/** One millisecond of work at the start and no more; one millisecond of work, repeated after 100 ms of idle time. */
const MANNERS = { rest: 'burst:1000:1:1000000', work: 'burst:1000:1:100' } as const;
type Manner = keyof typeof MANNERS;
/** The number of containers with a program: the simulated machine holds 256 processes, including the agent. */
const MAX_PROGRAMS = 250;
/** Each figure has so many samples. */
const SAMPLES = 3;
/** V8 compiles what an agent at rest runs in its first two minutes; the garbage of the start is collected by then. */
const WARM_UP_MS = 120_000;
const MEASURED_MS = 20_000;
const QUICK_WARM_UP_MS = 10_000;
const QUICK_MEASURED_MS = 3_000;
/** From the registration to the first pod: the agent rehearses its first answer a tenth of a second after it. */
const FIRST_POD_MS = 500;

/**
 * What the agent costs: a process of its own (`gpu-manager run`, bundled as in the image) on eight simulated GPUs, read
 * through NVML, with 8, 64 and 256 containers that have a process each (except the last six, see below); idle, and
 * while each of them works a hundredth of its time. Measured by /proc, all threads together: the simulated NVML runs in
 * the agent and checks whether the processes of its machine are alive, which costs more with each of them. All agents
 * run side by side; started by root, they keep usage files in a tmpfs, as the DaemonSet has it. The baseline
 * of CPU time is a Node process beside them that wakes ten times a second, as the agent does, and does nothing. Also
 * the first answer of all of an agent that has registered half a second before.
 *
 *     npm run bench -- agent [--quick] [start | rest | work] [8 | 64 | 256]
 *
 * With `start` only the start is measured; with a load or a count only those rows, and no start.
 */
export async function run(options: BenchOptions): Promise<void> {
  const shipped = await ShippedAgent.build();
  try {
    await measure(shipped.main, options);
  } finally {
    await shipped.remove();
  }
}

async function measure(main: string, { args, report }: BenchOptions): Promise<void> {
  const quick = args.includes('--quick');
  const manners = (Object.keys(MANNERS) as Manner[]).filter((manner) => args.includes(manner));
  const counts = COUNTS.filter((count) => args.includes(String(count)));
  if (args.includes('start') || (manners.length === 0 && counts.length === 0)) await measureStarts(main, report);
  if (args.includes('start')) return;
  const { residentMib: emptyMib } = await emptyNode();
  const rows = (manners.length > 0 ? manners : (Object.keys(MANNERS) as Manner[])).flatMap((manner) =>
    (counts.length > 0 ? counts : COUNTS).map((count): Row => ({ manner, count })),
  );
  for (const { costs, wakingPercent } of await measureCosts(main, rows, quick)) {
    report(measured('CPU, a Node that only wakes', wakingPercent, '% of a core'));
    for (const { manner, count, percent, resident } of costs) {
      const row = `at ${manner}, ${count} containers`;
      const few = costs.find((other) => other.manner === manner);
      report(measured(`CPU ${row}`, percent, '% of a core', wakingPercent));
      if (few !== undefined && few.count < count)
        report(measured(`CPU ${row} beside ${few.count}`, percent, '% of a core', few.percent));
      report(measured(`resident ${row}`, resident, 'MiB', emptyMib));
    }
  }
}

/** Starts an empty Node and the agent in turn, and asks each agent a first question. */
async function measureStarts(main: string, report: BenchOptions['report']): Promise<void> {
  const node = await BenchNode.open(GPUS, main);
  const reference = referenceMs();
  try {
    for (let count = 0; count < SAMPLES; count += 1) {
      const { ms: emptyMs } = await emptyNode();
      const begun = performance.now();
      await node.agent.start();
      report(measured('start to registered', performance.now() - begun, 'ms', emptyMs));
      await sleep(FIRST_POD_MS);
      const { endpoint, ids } = await connectPlugin(node.agent.pluginSocket);
      const asked = performance.now();
      await endpoint.preferred(ids, [], PART.cores);
      report(measured('first preferred allocation of all', performance.now() - asked, 'ms', reference));
      endpoint.close();
      await node.agent.end();
    }
  } finally {
    await node.close();
  }
}

/** An agent with so many containers of one manner. */
interface Row {
  readonly manner: Manner;
  readonly count: number;
}

interface Cost extends Row {
  readonly percent: number;
  readonly resident: number;
}

/** What one sample says: the agents side by side, and a Node beside them that only wakes. */
interface Sample {
  readonly costs: readonly Cost[];
  readonly wakingPercent: number;
}

/** All these agents, each on a node of its own, at the same time; several samples. */
async function measureCosts(main: string, rows: readonly Row[], quick: boolean): Promise<Sample[]> {
  const nodes: BenchNode[] = [];
  const waking = new WakingNode();
  try {
    for (const { manner, count } of rows) {
      const node = await BenchNode.open(GPUS, main);
      nodes.push(node);
      await node.agent.start();
      for (let container = 0; container < count; container += 1)
        await node.run(PART.cores, PART.memoryBlocks, container < MAX_PROGRAMS ? MANNERS[manner] : null);
    }
    await sleep(quick ? QUICK_WARM_UP_MS : WARM_UP_MS);
    const samples: Sample[] = [];
    while (samples.length < SAMPLES) {
      const pids = [waking.pid, ...nodes.map(({ agent }) => agent.pid)];
      const before = pids.map(cpuSeconds);
      const begun = performance.now();
      await sleep(quick ? QUICK_MEASURED_MS : MEASURED_MS);
      const seconds = (performance.now() - begun) / 1_000;
      const [wakingPercent = NaN, ...percents] = pids.map(
        (pid, at) => (100 * (cpuSeconds(pid) - (before[at] ?? NaN))) / seconds,
      );
      const costs = rows.map((row, at) => ({
        ...row,
        percent: percents[at] ?? NaN,
        resident: residentMib(nodes[at]?.agent.pid ?? 0),
      }));
      samples.push({ costs, wakingPercent });
    }
    return samples;
  } finally {
    waking.end();
    for (const node of nodes) await node.close();
  }
}
