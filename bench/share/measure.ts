import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeUsageSummary } from '../../src/abi/usage-file.js';
import { USAGE_FILE } from '../../src/abi/vgpu-abi.js';
import { LimitsWriter } from '../../src/agent/slices/limits/limits-writer.js';
import { stop, type MachineStatus, type SimulatedMachine } from '../sim/machine.js';
import type { SliceLimits, SteeringAgent } from '../sim/agent.js';
import type { GpuRow, Round, Steering, TenantRow } from './rows.js';
import { Witness } from './witness.js';

/** For starting, and for learning the costs of launches. */
export const WARM_UP_MS = 1500;
const MAX_S = '3600';

/** A container with its running programs. */
export interface RunningTenant {
  readonly slice: string;
  readonly children: readonly ChildProcess[];
}

/** The GPU time of one container, in percent of the GPU. */
export interface TenantResult {
  readonly asked: number;
  readonly got: number;
  /** The charges of its launches, by the library's own counters: the GPU time, as far as costs are known. */
  readonly charged: number;
  /** The largest difference from the requested share in any second. */
  readonly worstSecond: number;
  /** How long the machine kept the programs from running, in all and in the worst second. */
  readonly heldUpMs: number;
  readonly heldUpSecondMs: number;
}

export interface GpuResult {
  readonly row: GpuRow;
  readonly tenants: readonly TenantResult[];
  /** Kernels of all containers, in percent of the GPU's time. */
  readonly work: number;
}

/** A sample of all counters at one moment. */
interface Sample {
  readonly machine: MachineStatus;
  /** By pid. */
  readonly heldUpMs: ReadonlyMap<number, number>;
  /** By slice. */
  readonly chargedNs: ReadonlyMap<string, number>;
}

/** Runs containers on a simulated machine and reads their GPU time from the GPU's own counters. */
export class ShareBench {
  readonly machine: SimulatedMachine;
  readonly agent: SteeringAgent;
  #made = 0;

  constructor(machine: SimulatedMachine, agent: SteeringAgent) {
    this.machine = machine;
    this.agent = agent;
  }

  async start(
    gpu: number,
    { manner, share, softLimit, processes = 1 }: TenantRow,
    steering: Steering = 'agent',
  ): Promise<RunningTenant> {
    const limits: SliceLimits = { gpu, share, softLimit: softLimit ?? null };
    const slice = steering === 'library alone' ? await this.#unsteered(limits) : await this.agent.slice(limits);
    const children = Array.from({ length: processes }, () =>
      this.machine.start({ name: 'tenant', args: [MAX_S, manner], gpu, slice }),
    );
    return { slice, children };
  }

  async end(tenants: readonly RunningTenant[]): Promise<void> {
    await Promise.all(tenants.flatMap(({ children }) => children.map((child) => stop(child))));
    for (const { slice } of tenants) await this.agent.remove(slice);
  }

  /** GPU i of the machine is for row i of the round. */
  async measure(round: Round, seconds: number): Promise<GpuResult[]> {
    if (round.steering === 'silent NVML') await this.machine.silenceNvml();
    const running = await Promise.all(
      round.gpus.map(({ tenants }, gpu) =>
        Promise.all(tenants.map((tenant) => this.start(gpu, tenant, round.steering))),
      ),
    );
    await sleep(WARM_UP_MS);
    const tenants = running.flat();
    const witness = new Witness(
      this.machine,
      tenants.flatMap(({ children }) => children.map(pidOf)),
    );
    const samples = [await this.#sample(tenants, witness)];
    for (let second = 0; second < seconds; second += 1) {
      await sleep(1000);
      samples.push(await this.#sample(tenants, witness));
    }
    await witness.close();
    await this.end(tenants);
    if (round.steering === 'silent NVML') await this.machine.hearNvml();
    return round.gpus.map((row, gpu) => resultOf(row, running[gpu] ?? [], samples));
  }

  async #sample(tenants: readonly RunningTenant[], witness: Witness): Promise<Sample> {
    const [machine, heldUpMs] = await Promise.all([this.machine.status(), witness.heldUpMs()]);
    return { machine, heldUpMs, chargedNs: new Map(tenants.map(({ slice }) => [slice, chargedIn(slice)])) };
  }

  /** A slice that no agent steers: only the limits file. */
  async #unsteered({ gpu, share, softLimit }: SliceLimits): Promise<string> {
    this.#made += 1;
    const directory = join(this.machine.directory, 'unsteered', String(this.#made));
    await mkdir(join(directory, 'usage'), { recursive: true });
    const device = { uuid: this.machine.uuidOf(gpu), pciBusId: '', memoryBytes: null, share, softLimit };
    (await LimitsWriter.create(join(directory, 'vgpu.limits'), { allocation: 'bench', devices: [device] })).close();
    return directory;
  }
}

const pidOf = (child: ChildProcess): number => child.pid ?? 0;

function chargedIn(slice: string): number {
  const usage = decodeUsageSummary(readFileSync(join(slice, USAGE_FILE)));
  return usage.ok ? (usage.devices[0]?.chargedNs ?? 0) : 0;
}

/** Percent of the GPU that a container's kernels used between two samples. */
export function rateOf({ children }: RunningTenant, from: MachineStatus, to: MachineStatus): number {
  const worked = children.reduce(
    (sum, { pid }) => sum + (to.workNs.get(pid ?? 0) ?? 0) - (from.workNs.get(pid ?? 0) ?? 0),
    0,
  );
  return (100 * worked) / (to.nowNs - from.nowNs);
}

function resultOf(row: GpuRow, running: readonly RunningTenant[], samples: readonly Sample[]): GpuResult {
  const tenants = row.tenants.map(({ share, due = share }, index): TenantResult => {
    const tenant = running[index];
    if (tenant === undefined) throw new RangeError(`${row.name}: container ${index} did not run`);
    return tenantResult(tenant, due, samples);
  });
  return { row, tenants, work: tenants.reduce((sum, { got }) => sum + got, 0) };
}

function tenantResult(tenant: RunningTenant, asked: number, samples: readonly Sample[]): TenantResult {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('nothing was measured');
  const seconds = samples.slice(1).map((to, at) => {
    const from = samples[at] ?? first;
    return { rate: rateOf(tenant, from.machine, to.machine), heldUpMs: heldUpBetween(tenant, from, to) };
  });
  const chargedNs = (last.chargedNs.get(tenant.slice) ?? 0) - (first.chargedNs.get(tenant.slice) ?? 0);
  return {
    asked,
    got: rateOf(tenant, first.machine, last.machine),
    charged: (100 * chargedNs) / (last.machine.nowNs - first.machine.nowNs),
    worstSecond: Math.max(...seconds.map(({ rate }) => Math.abs(rate - asked))),
    heldUpMs: heldUpBetween(tenant, first, last),
    heldUpSecondMs: Math.max(...seconds.map(({ heldUpMs }) => heldUpMs)),
  };
}

/** The longest delay among its programs. */
function heldUpBetween({ children }: RunningTenant, from: Sample, to: Sample): number {
  return Math.max(...children.map(pidOf).map((pid) => (to.heldUpMs.get(pid) ?? 0) - (from.heldUpMs.get(pid) ?? 0)));
}
