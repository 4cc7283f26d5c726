import { setTimeout as sleep } from 'node:timers/promises';
import { BenchNode, emptyNode } from './agent/node.js';
import { ShippedAgent } from './agent/shipped-agent.js';
import { cpuSeconds, residentMib } from './agent/process-cost.js';
import { measured, median, type BenchOptions } from './report.js';

const GPUS = 8;
const COUNTS = [8, 64, 256] as const;
/** A part of a GPU small enough for 32 containers on each. */
const PART = { cores: 3, memoryBlocks: 2 };
/** One millisecond of work at the start and no more; one millisecond of work, repeated after 100 ms of idle time. */
const MANNERS = { rest: 'burst:1000:1:1000000', work: 'burst:1000:1:100' } as const;
type Manner = keyof typeof MANNERS;
/** The number of containers with a program: the simulated machine holds 256 processes, including the agent. */
const MAX_PROGRAMS = 250;
const STARTS = 5;
/** V8 compiles what an agent at rest runs in its first two minutes; the garbage of the start is collected by then. */
const WARM_UP_MS = 120_000;
const MEASURED_MS = 40_000;
const QUICK_WARM_UP_MS = 10_000;
const QUICK_MEASURED_MS = 5_000;

/** Goals: percent of a core, and of the cost of 8 containers; MiB; milliseconds beyond an empty Node. */
const GOALS = { restPercent: 0.5, growth: 1.5, restMib: 80, residentMib: 120, startMs: 300 } as const;

/**
 * What the agent costs: a process of its own (`gpu-manager run`, bundled as in the image) on eight simulated GPUs, read
 * through NVML, with 8, 64 and 256 containers that have a process each (except the last six, see below); idle, and
 * while each of them works a hundredth of its time. Measured by /proc, all threads together: the simulated NVML runs in
 * the agent and checks whether the processes of its machine are alive, which costs more with each of them. The agents
 * of a load run side by side; started by root, they keep usage files in a tmpfs, as the DaemonSet has it.
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

async function measure(main: string, { args, report, note }: BenchOptions): Promise<void> {
  const quick = args.includes('--quick');
  const manners = (Object.keys(MANNERS) as Manner[]).filter((manner) => args.includes(manner));
  const counts = COUNTS.filter((count) => args.includes(String(count)));
  const missed: string[] = [];
  const hold = (held: boolean, what: string): void => {
    if (!held) missed.push(what);
  };
  const conclude = (): void =>
    note(missed.length === 0 ? 'every goal is met' : `goals missed:\n${missed.map((line) => `  ${line}`).join('\n')}`);

  if (args.includes('start') || (manners.length === 0 && counts.length === 0)) {
    const start = await measureStart(main, quick ? 1 : STARTS);
    report(measured('start to registered', start.agentMs, 'ms', start.emptyMs));
    hold(
      start.agentMs - start.emptyMs <= GOALS.startMs,
      `${(start.agentMs - start.emptyMs).toFixed(0)} ms to be registered, beyond an empty Node`,
    );
  }
  if (args.includes('start')) return conclude();
  const { residentMib: emptyMib } = await emptyNode();
  for (const manner of manners.length > 0 ? manners : (Object.keys(MANNERS) as Manner[])) {
    const costs = await measureCosts(main, counts.length > 0 ? counts : COUNTS, MANNERS[manner], quick);
    const [{ percent: few } = { percent: NaN }] = costs;
    for (const [at, { count, percent, resident }] of costs.entries()) {
      const row = `at ${manner}, ${count} containers`;
      report(measured(`CPU ${row}`, percent, '% of a core', at === 0 ? null : few));
      report(measured(`resident ${row}`, resident, 'MiB', emptyMib));
      if (percent > GOALS.growth * few)
        missed.push(`CPU ${row}, is ${(percent / few).toFixed(2)} x that with the fewest`);
      if (manner === 'rest' && count <= 64)
        hold(percent <= GOALS.restPercent, `CPU ${row}: ${percent.toFixed(2)} % of a core`);
      const mostMib = manner === 'rest' && count <= 64 ? GOALS.restMib : GOALS.residentMib;
      hold(resident <= mostMib, `resident ${row}: ${resident.toFixed(0)} MiB`);
    }
  }
  conclude();
}

/** Medians over several starts, the agent and an empty Node in turn. */
async function measureStart(
  main: string,
  starts: number,
): Promise<{ readonly agentMs: number; readonly emptyMs: number }> {
  const node = await BenchNode.open(GPUS, main);
  const [agent, empty]: [number[], number[]] = [[], []];
  try {
    for (let count = 0; count < starts; count += 1) {
      empty.push((await emptyNode()).ms);
      const begun = performance.now();
      await node.agent.start();
      agent.push(performance.now() - begun);
      await node.agent.end();
    }
  } finally {
    await node.close();
  }
  return { agentMs: median(agent), emptyMs: median(empty) };
}

interface Cost {
  readonly count: number;
  readonly percent: number;
  readonly resident: number;
}

/** Agents with these numbers of containers, each on a node of its own, all at the same time. */
async function measureCosts(main: string, counts: readonly number[], manner: string, quick: boolean): Promise<Cost[]> {
  const nodes: BenchNode[] = [];
  try {
    for (const count of counts) {
      const node = await BenchNode.open(GPUS, main);
      nodes.push(node);
      await node.agent.start();
      for (let container = 0; container < count; container += 1)
        await node.run(PART.cores, PART.memoryBlocks, container < MAX_PROGRAMS ? manner : null);
    }
    await sleep(quick ? QUICK_WARM_UP_MS : WARM_UP_MS);
    const before = nodes.map(({ agent }) => cpuSeconds(agent.pid));
    const begun = performance.now();
    await sleep(quick ? QUICK_MEASURED_MS : MEASURED_MS);
    const seconds = (performance.now() - begun) / 1_000;
    return nodes.map(({ agent }, at) => ({
      count: counts[at] ?? NaN,
      percent: (100 * (cpuSeconds(agent.pid) - (before[at] ?? NaN))) / seconds,
      resident: residentMib(agent.pid),
    }));
  } finally {
    for (const node of nodes) await node.close();
  }
}
