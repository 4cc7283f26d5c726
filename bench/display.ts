import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SimulatedNode } from '../src/simulation/simulated-node.js';
import { printMatrix } from '../src/gpu/topology/matrix-print.js';
import { silentLog } from '../src/host/log.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { SIXTEEN } from './machines/sixteen.js';
import { measured, type BenchOptions } from './report.js';

const SLICES = 500;
/** Each sample of a figure is of so many rounds. */
const ROUNDS = 10;
const SAMPLES = 3;
/** Renderings of a document take at most a twenty-fifth of the time. */
const TIMES_RENDERING = 25;

/**
 * What the agent's pages cost: the answers of a node of 16 GPUs with 500 live containers, from the ledger and the
 * monitors to the text. The baseline is a fixed work of this process, 10 ms on a core of 2020.
 *
 *     npm run bench -- display
 */
export async function run(options: BenchOptions): Promise<void> {
  const topology = SIXTEEN['two cube meshes'];
  if (topology === undefined) throw new Error('no such machine');
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  const node = new SimulatedNode({
    directory,
    gpus: printMatrix(topology, [...topology.levels.keys()]),
    log: silentLog(),
  });
  await node.start();
  try {
    for (let at = 0; at < SLICES; at++) {
      const uid = `pod-${at}`;
      const admission = await node.kubelet.admit({
        uid,
        namespace: 'bench',
        name: uid,
        initContainers: [],
        containers: [{ name: 'main', cores: 2, memoryBlocks: 1 }],
      });
      if (!admission.ok) throw new Error(admission.message);
      await node.kubelet.startContainer(uid, 'main');
    }
    await measureAnswers(options, `http://127.0.0.1:${node.agent.httpPort()}`);
  } finally {
    await node.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function measureAnswers({ report, note }: BenchOptions, base: string): Promise<void> {
  const reference = referenceMs();
  for (const path of ['/api/node', '/usage', '/graph', '/metrics', '/']) {
    let bytes = 0;
    for (let sample = 0; sample < SAMPLES; sample++) {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const started = performance.now();
        bytes = (await (await fetch(`${base}${path}`)).arrayBuffer()).byteLength;
        times.push(performance.now() - started);
        // A reader that asks again sooner gets the answer that was rendered before.
        await pause(TIMES_RENDERING * (performance.now() - started));
      }
      for (const [label, at] of [
        ['median', 0.5],
        ['p99', 0.99],
      ] as const)
        report(measured(`GET ${path}, ${label}`, quantile(times, at), 'ms', reference));
    }
    note(`GET ${path}: ${bytes} bytes`);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? 0;
}
