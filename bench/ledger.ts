import { createEngine, type Demand, type QuotaEngine } from '../src/quota/index.js';
import { systemClock } from '../src/host/clock.js';
import { KubeStore } from '../src/quota-controller/store/kube-store.js';
import { ApiMemory } from './ledger/api-memory.js';
import { measured, type BenchOptions } from './report.js';

const SIZES = [100, 10_000, 100_000];
const ADMISSIONS = 1500;
/** The first admissions compile the code, and are not counted. */
const WARM_UP = 1500;
const RESERVED_MS = 60_000;
const GROUP = 'team';

interface Cost {
  readonly bytes: number;
  readonly mostBytes: number;
  readonly writes: number;
  readonly cpuMs: number;
  readonly followMs: number;
}

/**
 * What one admission writes and costs in a group of 100, 10,000 and 100,000 workloads: it is reserved by one replica,
 * its object is observed, and another replica reads both. The API server is a map in this process; HTTP and TLS, which
 * do not depend on the number of workloads, are left out.
 *
 *     npm run bench -- ledger [SIZE...]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const sizes = args.length > 0 ? args.map(Number) : SIZES;
  let baseline: Cost | null = null;
  for (const size of sizes) {
    const cost = await costAt(size);
    baseline ??= cost;
    const variant = `${size} workloads`;
    report(measured('longest write', cost.mostBytes, 'bytes', baseline.mostBytes, variant));
    report(measured('bytes of an admission', cost.bytes, 'bytes', baseline.bytes, variant));
    report(measured('writes of an admission', cost.writes, 'writes', baseline.writes, variant));
    report(measured('CPU of an admission', cost.cpuMs, 'ms', baseline.cpuMs, variant));
    report(measured('CPU of the other replica', cost.followMs, 'ms', baseline.followMs, variant));
  }
  note('ratios are to the first size');
}

async function costAt(size: number): Promise<Cost> {
  const api = new ApiMemory();
  const open = (): Promise<QuotaEngine> =>
    createEngine({ store: new KubeStore({ api, clock: systemClock }), clock: () => Date.now() });
  const engine = await open();
  await engine.createGroup({ name: GROUP, hard: { 'limits.cpu': 10_000_000, pods: 10_000_000 } });
  for (let at = 0; at < size; at += 1000) {
    const some = Array.from({ length: Math.min(1000, size - at) }, (_, index) => at + index);
    await Promise.all(some.map((index) => engine.admit(demandOf(`old-${index}`, 1))));
  }
  const other = await open();
  let [cpu, follow] = [0, 0];
  for (let index = 0; index < WARM_UP + ADMISSIONS; index++) {
    if (index === WARM_UP) {
      [cpu, follow] = [0, 0];
      api.writes.length = 0;
    }
    const started = process.cpuUsage();
    const demand = demandOf(`new-${index}`, index + 2);
    const { workload } = demand;
    await engine.execute({
      type: 'reserve',
      ...demand,
      workload: { ...workload, version: 0 },
      ttlMs: RESERVED_MS,
      operation: `${workload.uid ?? ''}@0`,
    });
    await engine.observe({ workload, group: GROUP, demand });
    const decided = process.cpuUsage();
    await other.catchUp([GROUP]);
    cpu += millisecondsOf(started, decided);
    follow += millisecondsOf(decided, process.cpuUsage());
  }
  const { writes } = api;
  return {
    bytes: writes.reduce((sum, bytes) => sum + bytes, 0) / ADMISSIONS,
    mostBytes: Math.max(...writes),
    writes: writes.length / ADMISSIONS,
    cpuMs: cpu / ADMISSIONS,
    followMs: follow / ADMISSIONS,
  };
}

function millisecondsOf(from: NodeJS.CpuUsage, to: NodeJS.CpuUsage): number {
  return (to.user + to.system - from.user - from.system) / 1000;
}

/** A single-pod job whose uid is as hard to compress as a real one. */
function demandOf(name: string, version: number): Demand {
  return {
    workload: { kind: 'Job.batch', namespace: `team-${version % 50}`, name, uid: crypto.randomUUID(), version },
    group: GROUP,
    podSets: [{ count: 1, limits: { cpu: '1500m' }, requests: { cpu: '500m' } }],
  };
}
