import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { JournalStore, createEngine, type QuotaEngine } from '../../src/quota/index.js';
import { measured, type BenchOptions } from '../report.js';
import type { ColdStart } from './cold-start.js';
import { Latencies } from './latency.js';
import { demandOf, worldOf, type World } from './world.js';

/** The number of concurrent clients of a busy service, each with one request after the other. */
const CLIENTS = 256;
const ALONE = 500;
const ADMISSIONS = 100_000;

async function inDirectory<T>(act: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'gm-bench-'));
  try {
    return await act(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Lets `clients` admit the workloads from `from` to `to`, and returns how long each waited. */
async function admitTogether(
  engine: QuotaEngine,
  world: World,
  from: number,
  to: number,
  clients: number,
): Promise<{ readonly rate: number; readonly latencies: Latencies }> {
  const latencies = new Latencies(to - from);
  let next = from;
  const client = async (): Promise<void> => {
    while (next < to) {
      const demand = demandOf(world, next++);
      const started = performance.now();
      const { allowed, message } = await engine.admit(demand);
      latencies.add(performance.now() - started);
      if (!allowed) throw new Error(`refused: ${message}`);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  return { rate: ((to - from) / (performance.now() - started)) * 1000, latencies };
}

async function filled(directory: string, world: World, durable: boolean): Promise<QuotaEngine> {
  const engine = await createEngine({ store: await JournalStore.open(directory, { durable }), clock: () => 0 });
  await Promise.all(world.groups.map((group) => engine.createGroup(group)));
  return engine;
}

/** Admissions that are on disk when they are answered. Baseline: one after the other, a commit each. */
export async function measureDurable({ report }: BenchOptions, groupCount: number): Promise<void> {
  const world = worldOf(groupCount, ADMISSIONS + ALONE, 'carved');
  await inDirectory(async (directory) => {
    const engine = await filled(directory, world, true);
    const alone = await admitTogether(engine, world, 0, ALONE, 1);
    const together = await admitTogether(engine, world, ALONE, ALONE + ADMISSIONS, CLIENTS);
    await engine.close();
    report(measured(`durable: admitted, ${CLIENTS} clients`, together.rate, '1/s', alone.rate));
    report(
      measured(
        `durable: admitted, ${CLIENTS} clients, p99`,
        together.latencies.quantile(0.99) / 1000,
        'ms',
        alone.latencies.quantile(0.99) / 1000,
      ),
    );
  });
}

/** A restart on a journal of `count` workloads, in a process of its own. */
export async function measureColdStart({ report }: BenchOptions, groupCount: number, count: number): Promise<void> {
  const world = worldOf(groupCount, count, 'elastic');
  await inDirectory(async (directory) => {
    const engine = await filled(directory, world, false);
    await admitTogether(engine, world, 0, count, 1000);
    await engine.close();
    const script = fileURLToPath(new URL('./cold-start.js', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, directory]);
    const { ms, workloads } = JSON.parse(stdout) as ColdStart;
    if (workloads !== count) throw new Error(`${workloads} workloads of ${count} came back`);
    report(measured(`cold start with ${count} workloads`, ms / 1000, 's'));
  });
}
