import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseSimNode } from '../src/agent/gpus/sim/node.js';
import { SimDriver } from '../src/agent/gpus/sim/sim-driver.js';
import { ClaimAgentProcess } from '../test/agent/claims/claim-agent-process.js';
import { DraNode, POOL } from '../test/agent/claims/dra-node.js';
import { cards } from '../test/agent/gpus.js';
import { eventually } from '../test/harness/eventually.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { residentMib } from './agent/process-cost.js';
import { ClaimNode } from './dra/claim-node.js';
import { measured, median, type Bench, type BenchOptions } from './report.js';

/** Units on the node while others are prepared and released, and when the agent starts again. */
const PRESENT = 100;
const ROUNDS = 200;
const RESTORED = 200;
/** Agents that are started in each mode, and how long each runs before its memory is read. */
const STARTS = 3;
const SETTLED_MS = 5_000;

/** ResourceSlices are written at most once in this time. */
const WRITE_MS = 1_000;
/** Each figure with a goal has so many samples. */
const SAMPLES = 3;
/** GPUs that are lost, one after another. */
const CHANGES = 5 * SAMPLES;

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** Every third of them: what else the machine does meanwhile is in all samples. */
const inSample = (times: readonly number[], sample: number): number[] =>
  times.filter((_, at) => at % SAMPLES === sample);

/**
 * Claims that are prepared and released on a node that holds many, the start of an agent with these claims, its memory
 * beside an agent of the device plugin, and how soon a change of a GPU's health is published.
 *
 *     npm run bench -- dra
 *
 * `npm run bench -- scheduler` has a real kube-scheduler bind pods with claims.
 */
export const run: Bench = async ({ report, note }) => {
  await measurePreparation(report, note);
  await measurePublication(report);
  await measureMemory(report, note);
};

async function measurePreparation(report: BenchOptions['report'], note: BenchOptions['note']): Promise<void> {
  const node = await ClaimNode.start();
  try {
    await node.hold(PRESENT);
    const { empty, prepare, again, release, api } = await node.calls(ROUNDS);
    for (const [label, part] of [
      ['median', 0.5],
      ['p99', 0.99],
    ] as const)
      for (let sample = 0; sample < SAMPLES; sample += 1) {
        const of = (times: readonly number[]): number => percentile(inSample(times, sample), part);
        const base = of(empty);
        report(measured(`call without claims, ${label}`, base, 'ms'));
        report(measured(`prepare a share, ${label}`, of(prepare), 'ms', base));
        report(measured(`prepare it again, ${label}`, of(again), 'ms', base));
        report(measured(`release it, ${label}`, of(release), 'ms', base));
      }
    await node.hold(RESTORED - PRESENT);
    for (let sample = 0; sample < SAMPLES; sample += 1)
      report(measured(`start with ${RESTORED} units`, await node.restart(), 'ms', referenceMs()));
    note(
      `${PRESENT} units on the GPUs of pool ${POOL}, ${ROUNDS} rounds; the figures leave out the time in which the agent waited for the API server (prepare: median ${percentile(api, 0.5).toFixed(1)} ms, p99 ${percentile(api, 0.99).toFixed(1)} ms).`,
    );
  } finally {
    await node.stop();
  }
}

/**
 * GPUs are lost one right after another; from the loss, and from the agent's notice of it, to the taint at the API
 * server.
 */
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
    const all: number[] = [];
    for (const [at, { uuid }] of (await driver.inventory()).gpus.entries()) {
      let noticed = NaN;
      const leave = node.agent.allocator.onDevicesChanged(() => (noticed = performance.now()));
      const lost = performance.now();
      driver.lose(uuid);
      await eventually(() => tainted() === at + 1, `the taint of GPU ${at}`, 60_000);
      times.push(performance.now() - noticed);
      all.push(performance.now() - lost);
      leave();
    }
    report(measured('publish after a health change, median', median(times), 'ms'));
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      const [longest, fromLoss] = [times, all].map((each) => Math.max(...inSample(each, sample)));
      report(measured('publish after a health change, longest', longest ?? NaN, 'ms', WRITE_MS));
      report(measured('publish after the loss of a GPU, longest', fromLoss ?? NaN, 'ms'));
    }
  } finally {
    await node.cluster.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Resident memory of an agent process that has just started, in both modes, in turn. */
async function measureMemory(report: BenchOptions['report'], note: BenchOptions['note']): Promise<void> {
  for (let round = 0; round < STARTS; round += 1) {
    const plugin = await residentAfterStart('plugin');
    report(measured('memory with --allocation=dra', await residentAfterStart('dra'), 'MiB', plugin));
  }
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
