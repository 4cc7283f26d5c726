import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseSimNode } from '../src/agent/gpus/sim/node.js';
import { SimDriver } from '../src/agent/gpus/sim/sim-driver.js';
import { DraNode, POOL } from '../test/agent/dra/dra-node.js';
import { ClaimAgentProcess } from '../test/agent/dra/claim-agent-process.js';
import { cards } from '../test/agent/gpus.js';
import { eventually } from '../test/harness/eventually.js';
import { residentMib } from './agent/process-cost.js';
import { measured, median, type Bench, type BenchOptions } from './report.js';

/** Units on the node while others are prepared and released. */
const PRESENT = 100;
const ROUNDS = 200;
const RESTORED = 200;
/** GPUs that are lost, one after another. */
const CHANGES = 9;
/** Agents that are started in each mode, and how long each runs before its memory is read. */
const STARTS = 3;
const SETTLED_MS = 5_000;

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

/**
 * Claims that are prepared and released on a node that holds many, the start of an agent with these claims, its memory
 * beside an agent of the device plugin, and how soon a change of a GPU's health is published.
 */
export const run: Bench = async ({ report, note }) => {
  await measurePreparation(report, note);
  await measurePublication(report);
  await measureMemory(report, note);
};

async function measurePreparation(report: BenchOptions['report'], note: BenchOptions['note']): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const node = new DraNode(directory, 8);
  try {
    await node.cluster.start();
    await eventually(() => node.cluster.server.all('resourceslices').length > 0, 'the GPUs are published', 60_000);
    const names = (count: number, prefix: string): string[] =>
      Array.from({ length: count }, (_, at) => `${prefix}${at}`);
    const allocate = (name: string, at: number): void =>
      node.allocate(name, { cores: 3, memory: '256Mi', device: at % 8 });
    for (const [at, name] of names(PRESENT, 'present').entries()) {
      allocate(name, at);
      await node.prepare(name);
    }
    const noOp: number[] = [];
    const prepare: number[] = [];
    const again: number[] = [];
    const release: number[] = [];
    for (const [at, name] of names(ROUNDS, 'round').entries()) {
      allocate(name, at);
      noOp.push(await timed(() => node.prepare()));
      prepare.push(await timed(() => node.prepare(name)));
      again.push(await timed(() => node.prepare(name)));
      release.push(await timed(() => node.unprepare(name)));
      node.cluster.server.remove('resourceclaims', 'team', name);
    }
    const base = percentile(noOp, 0.5);
    report(measured('call without claims, median', base, 'ms'));
    report(measured('prepare a share, median (goal 50)', percentile(prepare, 0.5), 'ms', base));
    report(measured('prepare a share, 99th percentile (goal 200)', percentile(prepare, 0.99), 'ms', base));
    report(measured('prepare it again, median (goal 10)', percentile(again, 0.5), 'ms', base));
    report(measured('release it, median', percentile(release, 0.5), 'ms', base));
    for (const [at, name] of names(RESTORED - PRESENT, 'more').entries()) {
      allocate(name, at + PRESENT);
      await node.prepare(name);
    }
    await node.node.stopAgent();
    report(measured(`start with ${RESTORED} units (goal 3000)`, await timed(() => node.node.startAgent()), 'ms', base));
    note(
      `${PRESENT} units on 8 GPUs of pool ${POOL}; the API server is one in this process, and its time is part of each figure.`,
    );
  } finally {
    await node.cluster.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** GPUs are lost one right after another: from the agent's notice to the taint at the API server. */
async function measurePublication(report: BenchOptions['report']): Promise<void> {
  const parsed = parseSimNode(cards(CHANGES));
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node);
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const node = new DraNode(directory, CHANGES, { driver });
  try {
    await node.cluster.start();
    const tainted = (): number =>
      node.cluster.server
        .all('resourceslices')
        .flatMap(
          ({ spec }) => (spec as { readonly devices: readonly { readonly taints?: readonly object[] }[] }).devices,
        )
        .filter(({ taints = [] }) => taints.length > 0).length;
    await eventually(() => node.cluster.server.all('resourceslices').length > 0, 'the GPUs are published', 60_000);
    const times: number[] = [];
    for (const [at, { uuid }] of (await driver.inventory()).gpus.entries()) {
      let noticed = NaN;
      const leave = node.agent.allocator.onDevicesChanged(() => (noticed = performance.now()));
      driver.lose(uuid);
      await eventually(() => tainted() === at + 1, `the taint of GPU ${at}`, 60_000);
      times.push(performance.now() - noticed);
      leave();
    }
    report(measured('publish after a health change, median (goal 2000)', median(times), 'ms'));
    report(measured('publish after a health change, longest', Math.max(...times), 'ms'));
  } finally {
    await node.cluster.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Resident memory of an agent process that has just started, in both modes, in turn. */
async function measureMemory(report: BenchOptions['report'], note: BenchOptions['note']): Promise<void> {
  const figures: Record<'plugin' | 'dra', number[]> = { plugin: [], dra: [] };
  for (let round = 0; round < STARTS; round += 1)
    for (const allocation of ['plugin', 'dra'] as const) figures[allocation].push(await residentAfterStart(allocation));
  const [plugin, dra] = [median(figures.plugin), median(figures.dra)];
  report(measured('memory with --allocation=dra', dra, 'MiB', plugin));
  report(measured('memory beyond --allocation=plugin (goal 10)', dra - plugin, 'MiB'));
  note(
    `memory: median of ${STARTS} agents in each mode, ${SETTLED_MS / 1_000} s after their start, without containers.`,
  );
}

async function residentAfterStart(allocation: 'plugin' | 'dra'): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const node = new DraNode(directory, 8);
  const kubelet = node.node.kubelet;
  const agent = new ClaimAgentProcess(node, 8, allocation);
  try {
    await node.cluster.server.start();
    await kubelet.start();
    await agent.start();
    await kubelet.ready(60_000);
    await delay(SETTLED_MS);
    return residentMib(agent.pid);
  } finally {
    await agent.kill();
    await kubelet.stop();
    await node.cluster.server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}
