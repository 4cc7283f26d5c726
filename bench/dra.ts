import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DraNode, POOL } from '../test/agent/dra/dra-node.js';
import { eventually } from '../test/harness/eventually.js';
import { measured, type Bench } from './report.js';

/** Units on the node while others are prepared and released. */
const PRESENT = 100;
const ROUNDS = 200;
const RESTORED = 200;

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

/** Claims that are prepared and released on a node that holds many, and the start of an agent with these claims. */
export const run: Bench = async ({ report, note }) => {
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
};
