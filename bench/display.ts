import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SimulatedNode } from '../src/simulation/simulated-node.js';
import { printMatrix } from '../src/gpu/topology/matrix-print.js';
import { silentLog } from '../src/host/log.js';
import { RENEWED_AFTER_MS } from '../src/http/shared-answer.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { SIXTEEN } from './machines/sixteen.js';
import { measured, type BenchOptions } from './report.js';

const SLICES = 500;
const PATHS = ['/api/node', '/usage', '/graph', '/metrics', '/'] as const;
/** Each sample of a figure is of so many rounds. */
const ROUNDS = 10;
const SAMPLES = 3;

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
  const bytes = new Map<string, number>();
  for (let sample = 0; sample < SAMPLES; sample++) {
    const times = new Map(PATHS.map((path) => [path, [] as number[]]));
    for (let round = 0; round < ROUNDS; round++) {
      // The pages by turns: each is rendered anew, since its last rendering is older than this pause.
      await sleep(RENEWED_AFTER_MS + 1);
      for (const path of PATHS) {
        const started = performance.now();
        bytes.set(path, (await (await fetch(`${base}${path}`)).arrayBuffer()).byteLength);
        times.get(path)?.push(performance.now() - started);
      }
    }
    for (const [path, of] of times)
      for (const [label, part] of [
        ['median', 0.5],
        ['p99', 0.99],
      ] as const)
        report(measured(`GET ${path}, ${label}`, quantile(of, part), 'ms', reference));
  }
  for (const [path, count] of bytes) note(`GET ${path}: ${count} bytes`);
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? 0;
}
