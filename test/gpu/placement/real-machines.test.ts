import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { place } from '../../../src/gpu/placement/place.js';
import { parseMatrix } from '../../../src/gpu/topology/matrix-text.js';
import { hasNvlink, type Topology } from '../../../src/gpu/topology/topology.js';
import { slotsOf } from '../topology/machines.js';
import { firstInOrder, highestScore, scoreOpinion, subsets } from './exhaustive.js';

/** A folder of real `nvidia-smi topo -m` outputs and an index.json that states the best sets of each. */
const folder = process.env['GPU_MANAGER_TOPOLOGIES'] ?? '';
const skip = existsSync(join(folder, 'index.json'))
  ? false
  : 'GPU_MANAGER_TOPOLOGIES names no folder with an index.json';

interface IndexEntry {
  readonly file: string;
  readonly n_gpu: number;
  readonly pair_levels: Readonly<Record<string, number>>;
  readonly best_sets: Readonly<Record<string, { readonly max_score: number }>>;
}

const entries =
  skip === false ? (JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as { files: IndexEntry[] }).files : [];

function machine(entry: IndexEntry): Topology {
  const result = parseMatrix(readFileSync(join(folder, entry.file), 'utf8'));
  if (!result.ok) throw new Error(`${entry.file}: ${result.reason}`);
  return result.topology;
}

function chosenSet(topology: Topology, free: readonly number[], count: number): readonly number[] {
  const slots = slotsOf(topology.levels.length).map((slot, at) => ({
    ...slot,
    freeCores: free.includes(at) ? 100 : 0,
  }));
  const placed = place(topology, slots, { cores: count * 100, memoryBytes: 0 });
  return placed.ok ? placed.gpus.map((gpu) => gpu.index) : [];
}

function chosenScore(topology: Topology, free: readonly number[], count: number): number {
  return scoreOpinion(topology, chosenSet(topology, free, count));
}

test('the reader reads every real machine as its index states', { skip }, (t) => {
  for (const entry of entries) {
    const topology = machine(entry);
    t.equal(topology.levels.length, entry.n_gpu, entry.file);
    const labels: Record<string, number> = {};
    for (const [a, b] of subsets([...topology.levels.keys()], 2) as [number, number][]) {
      const links = topology.nvlinks[a]?.[b] ?? 0;
      const label = links > 0 ? `NV${links}` : (topology.levels[a]?.[b] ?? '');
      labels[label] = (labels[label] ?? 0) + 1;
    }
    const modern = Object.entries(entry.pair_levels).map(([label, count]) => [label === 'SOC' ? 'SYS' : label, count]);
    t.same(labels, Object.fromEntries(modern), entry.file);
  }
  t.end();
});

test('placement reaches the best scores of the index on every real machine', { skip }, (t) => {
  for (const entry of entries) {
    const topology = machine(entry);
    for (const [count, { max_score }] of Object.entries(entry.best_sets)) {
      t.equal(
        chosenScore(topology, [...topology.levels.keys()], Number(count)),
        max_score,
        `the best set of ${count} GPUs of ${entry.file} has the score of the index`,
      );
    }
  }
  t.end();
});

test('placement chooses the best set of every size from every free subset of every real machine', { skip }, (t) => {
  for (const entry of entries) {
    const topology = machine(entry);
    const positions = [...topology.levels.keys()];
    let asked = 0;
    const wrong: string[] = [];
    for (const size of positions.map((position) => position + 1)) {
      for (const free of subsets(positions, size)) {
        for (let count = 2; count <= size; count++, asked++) {
          const right = hasNvlink(topology)
            ? String(chosenSet(topology, free, count)) === String(firstInOrder(topology, free, count))
            : chosenScore(topology, free, count) === highestScore(topology, free, count);
          if (!right) wrong.push(`${count} of ${free.join()}`);
        }
      }
    }
    t.same(wrong, [], `the test covers ${asked} requests on ${entry.file}`);
  }
  t.end();
});
