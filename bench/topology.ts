import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { SimulatedNode } from '../src/simulation/simulated-node.js';
import { place } from '../src/gpu/placement/place.js';
import { pairScore } from '../src/gpu/placement/score.js';
import type { GpuSlot } from '../src/gpu/placement/slot.js';
import { printMatrix } from '../src/gpu/topology/matrix-print.js';
import { gpuCount, type Topology } from '../src/gpu/topology/topology.js';
import { defaultGpu } from '../src/agent/gpus/sim/node.js';
import { silentLog } from '../src/host/log.js';
import { PLUGIN_SOCKET } from '../src/agent/device-plugin/plugin-server.js';
import { devicePluginProto } from '../src/rpc/proto.js';
import { callUnary } from '../src/rpc/unary.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { SIXTEEN } from './machines/sixteen.js';
import { measured, type BenchOptions } from './report.js';
import { connectPlugin } from './sim/plugin-client.js';

/** Of what has a goal. */
const SAMPLES = 3;
const ROUNDS = 200;
const CALLS = 1000;
const LIVE_CONTAINERS = 500;

/**
 * How long the choice of GPUs takes: the best set of k of 16 (baseline: comparing every set), and
 * GetPreferredAllocation over the plugin's socket on a node of 16 GPUs with 500 live containers (baseline: an empty
 * call on the same socket).
 *
 *     npm run bench -- topology
 */
export async function run(options: BenchOptions): Promise<void> {
  for (const [name, topology] of Object.entries(SIXTEEN)) measureBestSets(options, name, topology);
  await measurePreferences(options);
}

function measureBestSets(options: BenchOptions, name: string, topology: Topology): void {
  const slots = freeSlots(topology);
  for (let sample = 0; sample < SAMPLES; sample++) {
    // Placement does not recognise a copy of the machine: it computes everything anew.
    const first = quantile(
      Array.from({ length: 9 }, () => timeOf(() => place({ ...topology }, slots, { cores: 100, memoryBytes: 0 }))),
      0.5,
    );
    options.report(measured(`${name}: the first question of all, median`, first / 1000, 'ms', referenceMs()));
  }
  let slowest = { count: 0, us: 0 };
  for (let count = 1; count <= slots.length; count++) {
    const us = quantile(
      Array.from({ length: ROUNDS }, () =>
        timeOf(() => place(topology, slots, { cores: count * 100, memoryBytes: 0 })),
      ),
      0.5,
    );
    if (us > slowest.us) slowest = { count, us };
  }
  const exhaustive = quantile(
    Array.from({ length: 5 }, () => timeOf(() => lookAtAll(topology, slowest.count))),
    0.5,
  );
  options.report(
    measured(`${name}: best set of ${slowest.count} of 16 (the slowest size), median`, slowest.us, 'us', exhaustive),
  );
}

function freeSlots(topology: Topology): GpuSlot[] {
  return Array.from({ length: gpuCount(topology) }, (_, index) => {
    const gpu = defaultGpu(index);
    return { gpu, freeCores: 100, freeMemoryBytes: gpu.memoryBytes, processCount: 0, usable: true };
  });
}

/** Every set and every pair in it: the obvious algorithm. */
function lookAtAll(topology: Topology, count: number): number {
  let best = -1;
  const visit = (from: number, set: readonly number[]): void => {
    if (set.length === count) {
      let score = 0;
      for (const [at, a] of set.entries())
        for (let other = at + 1; other < set.length; other++) score += pairScore(topology, a, set[other] as number);
      best = Math.max(best, score);
      return;
    }
    for (let next = from; next < gpuCount(topology); next++) visit(next + 1, [...set, next]);
  };
  visit(0, []);
  return best;
}

async function measurePreferences(options: BenchOptions): Promise<void> {
  const topology = SIXTEEN['two cube meshes'] as Topology;
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const gpus = printMatrix(topology, [...topology.levels.keys()]);
  const node = new SimulatedNode({ directory, gpus, log: silentLog() });
  await node.start();
  try {
    const taken = new Set<string>();
    for (let at = 0; at < LIVE_CONTAINERS; at++) {
      const container = { name: 'main', cores: 2, memoryBlocks: 1 };
      const uid = `pod-${at}`;
      const admission = await node.kubelet.admit({
        uid,
        namespace: 'bench',
        name: uid,
        initContainers: [],
        containers: [container],
      });
      if (!admission.ok) throw new Error(admission.message);
      await node.kubelet.startContainer(uid, 'main');
      for (const id of admission.containers.flatMap((given) => given.coreIds)) taken.add(id);
    }
    await measureCalls(options, join(node.config.devicePluginPath, PLUGIN_SOCKET.core), taken);
  } finally {
    await node.stop();
    await rm(directory, { recursive: true });
  }
}

async function measureCalls(options: BenchOptions, socket: string, taken: ReadonlySet<string>): Promise<void> {
  const { DevicePlugin } = devicePluginProto().v1beta1;
  const client = new DevicePlugin(`unix:${socket}`, credentials.createInsecure());
  const { endpoint, ids } = await connectPlugin(socket);
  const available = ids.filter((id) => !taken.has(id));
  const ask = (size: number) => () => endpoint.preferred(available, [], size);
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    nothing: () => callUnary(client, 'GetDevicePluginOptions', {}, 5000),
    'a part of a GPU': ask(2),
    'one GPU': ask(100),
    'four GPUs': ask(400),
  };
  const times = new Map<string, number[]>(Object.keys(calls).map((name) => [name, []]));
  // The two alternate, so that other load of the machine affects both.
  for (let round = 0; round < CALLS; round++) {
    for (const [name, call] of Object.entries(calls)) {
      const started = performance.now();
      await call();
      times.get(name)?.push((performance.now() - started) * 1000);
    }
  }
  client.close();
  endpoint.close();
  const nothing = times.get('nothing') ?? [];
  for (const [name, measuredTimes] of times) {
    if (name === 'nothing') continue;
    for (const [label, at] of [
      ['median', 0.5],
      ['p99', 0.99],
    ] as const) {
      options.report(
        measured(`preferred allocation of ${name}, ${label}`, quantile(measuredTimes, at), 'us', quantile(nothing, at)),
      );
    }
  }
  options.note(
    `preferred allocation: 16 GPUs, ${LIVE_CONTAINERS} live containers, ${available.length} ids available, ${CALLS} calls each, no API server`,
  );
}

function timeOf(action: () => unknown): number {
  const started = performance.now();
  action();
  return (performance.now() - started) * 1000;
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? 0;
}
