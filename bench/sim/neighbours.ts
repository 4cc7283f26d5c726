import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SteeringAgent, SliceLimits } from './agent.js';
import { stop, type MachineStatus, type SimulatedMachine } from './machine.js';

/** For starting, and for learning the costs of launches; the service leaves out its first two seconds too. */
export const WARM_UP_S = 2;

export type Limits = Omit<SliceLimits, 'gpu'>;

/** A service on a simulated GPU, alone or beside a batch that never waits. */
export interface Neighbours {
  /** What the service does: a pattern of native/bench/tenant.c that prints latencies. */
  readonly pattern: string;
  /** Null: the driver itself, without limits. */
  readonly service: Limits | null;
  /** `none`: the service is alone; null: the driver itself, without limits. */
  readonly batch: Limits | 'none' | null;
  /** Of the batch. */
  readonly kernelMs: number;
}

/** How the neighbours fared. */
export interface Served {
  /** Latencies of the service. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly worstMs: number;
  readonly count: number;
  /** The batch's part of the GPU time that the service left, by the GPU's own counters. */
  readonly batchPart: number;
  /** The part of the time in which kernels of the service ran. */
  readonly serviceWork: number;
  /** The same for both. */
  readonly work: number;
}

/** Where the neighbours run, and how their programs start: `tenant` with these arguments. */
export interface NeighbourPrograms {
  readonly status: () => Promise<MachineStatus>;
  readonly service: (args: readonly string[]) => ChildProcess;
  /** Null: the service is alone. */
  readonly batch: ((args: readonly string[]) => ChildProcess) | null;
}

/** Runs the neighbours on GPU 0 for this time, after a warm-up. */
export async function serve(
  machine: SimulatedMachine,
  agent: SteeringAgent,
  { service, batch, ...work }: Neighbours,
  seconds: number,
): Promise<Served> {
  // Each in a slice of its own, also where both have the same limits.
  const slices: string[] = [];
  const starter = async (limits: Limits | null, output: 'pipe' | 'ignore') => {
    const slice = limits === null ? null : await agent.slice({ gpu: 0, ...limits });
    if (slice !== null) slices.push(slice);
    return (args: readonly string[]): ChildProcess => machine.start({ name: 'tenant', args, gpu: 0, slice, output });
  };
  try {
    return await runNeighbours(
      {
        status: () => machine.status(),
        service: await starter(service, 'pipe'),
        batch: batch === 'none' ? null : await starter(batch, 'ignore'),
      },
      work,
      seconds,
    );
  } finally {
    for (const slice of slices) await agent.remove(slice);
  }
}

/** Runs both programs for this time, after a warm-up. */
export async function runNeighbours(
  programs: NeighbourPrograms,
  { pattern, kernelMs }: Pick<Neighbours, 'pattern' | 'kernelMs'>,
  seconds: number,
): Promise<Served> {
  const total = seconds + WARM_UP_S;
  const batch = programs.batch?.([String(total + 60), `async:${kernelMs * 1000}`]) ?? null;
  await sleep(WARM_UP_S * 1000);
  const service = programs.service([String(total), pattern]);
  let text = '';
  service.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise((resolve) => service.on('close', resolve));
  await sleep(WARM_UP_S * 1000);
  const before = await programs.status();
  await sleep((seconds - 1) * 1000);
  const after = await programs.status();
  await ended;
  if (batch !== null) await stop(batch);
  const elapsedNs = after.nowNs - before.nowNs;
  const workOf = (pid: number | undefined): number =>
    pid === undefined ? 0 : ((after.workNs.get(pid) ?? 0) - (before.workNs.get(pid) ?? 0)) / elapsedNs;
  const times = text
    .trim()
    .split('\n')
    .map((line) => Number(line) / 1000)
    .toSorted((a, b) => a - b);
  if (Number.isNaN(times[0] ?? NaN) || times[0] === 0) throw new Error(`${pattern}: the service printed no latencies`);
  const percentile = (part: number): number =>
    times[Math.min(times.length - 1, Math.floor(part * times.length))] ?? NaN;
  const [serviceWork, batchWork] = [workOf(service.pid), workOf(batch?.pid)];
  return {
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    worstMs: times.at(-1) ?? NaN,
    count: times.length,
    batchPart: batchWork / (1 - serviceWork),
    serviceWork,
    work: serviceWork + batchWork,
  };
}
