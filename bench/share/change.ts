import { setTimeout as sleep } from 'node:timers/promises';
import type { MachineStatus } from '../sim/machine.js';
import { rateOf, WARM_UP_MS, type RunningTenant, type ShareBench } from './measure.js';

/** The sampling interval, and how long after a change. */
const SAMPLE_MS = 40;
export const WATCHED_MS = 2500;
/** A share is reached when the use over this period stays within so many percentage points of it. */
const HOLDS_NS = 500e6;
export const HOLDS_MS = HOLDS_NS / 1e6;
const POINTS = 2;

export interface Change {
  readonly name: string;
  /** From the change until the share is reached; null: not during the measurement. */
  readonly reachedMs: number | null;
}

/** A share is raised and lowered while the container runs. */
export async function resized(bench: ShareBench): Promise<Change[]> {
  const changes: Change[] = [];
  for (const manner of ['async:200', 'async:20000']) {
    const tenant = await bench.start(0, { manner, share: 20 });
    await sleep(WARM_UP_MS);
    for (const [from, to] of [
      [20, 60],
      [60, 20],
    ] as const) {
      bench.agent.resize(tenant.slice, to);
      changes.push({
        name: `${manner}: share ${from} becomes ${to}`,
        reachedMs: reached(tenant, to, await watch(bench)),
      });
    }
    await bench.end([tenant]);
  }
  return changes;
}

/** A container that may use idle time, and another that starts to use its share and ends. */
export async function visited(bench: ShareBench, share: number, softLimit: number, visitor: number): Promise<Change[]> {
  const host = await bench.start(0, { manner: 'async:200', share, softLimit });
  await sleep(WARM_UP_MS);
  const lent = reached(host, softLimit, await watch(bench));
  const before = await bench.machine.status();
  const guest = await bench.start(0, { manner: 'async:2000', share: visitor });
  const samples = [before, ...(await watch(bench))];
  // The start of the second container is not counted: the time runs from the moment that its kernels run.
  const from = samples.findIndex((sample) => rateOf(guest, before, sample) > 0);
  const during = samples.slice(Math.max(0, from));
  const came = [reached(host, share, during), reached(guest, visitor, during)];
  await bench.end([guest]);
  const after = await watch(bench);
  const changes = [
    { name: `soft ${share} to ${softLimit}, alone: reaches ${softLimit}`, reachedMs: lent },
    { name: `a neighbour of ${visitor} comes: back at ${share}`, reachedMs: came[0] ?? null },
    { name: `the neighbour reaches ${visitor}`, reachedMs: came[1] ?? null },
    { name: `the neighbour goes: at ${softLimit} again`, reachedMs: reached(host, softLimit, after) },
  ];
  await bench.end([host]);
  return changes;
}

async function watch({ machine }: ShareBench): Promise<MachineStatus[]> {
  const samples = [await machine.status()];
  const end = performance.now() + WATCHED_MS;
  while (performance.now() < end) {
    await sleep(SAMPLE_MS);
    samples.push(await machine.status());
  }
  return samples;
}

function reached(tenant: RunningTenant, share: number, samples: readonly MachineStatus[]): number | null {
  const origin = samples[0]?.nowNs ?? 0;
  for (const [at, from] of samples.entries()) {
    const to = samples.slice(at).find(({ nowNs }) => nowNs >= from.nowNs + HOLDS_NS);
    if (to === undefined) return null;
    if (Math.abs(rateOf(tenant, from, to) - share) <= POINTS) return (from.nowNs - origin) / 1e6;
  }
  return null;
}
