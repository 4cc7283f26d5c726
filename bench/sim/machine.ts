import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { memoryDirectory } from '../summary/leftovers.js';

/** The libraries and programs of the native side. */
export const BUILD_DIRECTORY = fileURLToPath(new URL('../../../native/build/', import.meta.url));
/** Libraries of the simulated driver, alone and behind the control library. */
const DIRECT = join(BUILD_DIRECTORY, 'sim');
const MIRROR = join(BUILD_DIRECTORY, 'mirror');

const run = promisify(execFile);

/** The counters of the machine's GPUs and processes. */
export interface MachineStatus {
  readonly nowNs: number;
  /** By GPU: time in which its multiprocessors belonged to a program. */
  readonly busyNs: readonly number[];
  /** By pid: time in which its kernels ran. */
  readonly workNs: ReadonlyMap<number, number>;
  /** By pid: device memory, with that of its contexts. */
  readonly memoryBytes: ReadonlyMap<number, number>;
}

/** What differs from the default description of a simulated node. */
export interface Description {
  /** Of a machine with one GPU. */
  readonly uuid?: string;
  readonly memoryMiB?: number;
  readonly contextMs?: number;
  readonly driverVersion?: string;
}

export interface Program {
  readonly name: string;
  readonly args: readonly string[];
  readonly gpu: number;
  /** The directory that the container sees as /etc/vcuda; null: the driver without the control library. */
  readonly slice: string | null;
  /** The folder through which it is a client of MPS; absent: it is none. */
  readonly mpsFolder?: string;
  readonly output?: 'pipe' | 'ignore';
}

/** A simulated machine with programs on it; all of it is removed when it is closed. */
export class SimulatedMachine {
  readonly directory: string;
  readonly gpus: number;
  readonly #uuid: string | null;
  readonly #children = new Set<ChildProcess>();

  private constructor(directory: string, gpus: number, uuid: string | null) {
    this.directory = directory;
    this.gpus = gpus;
    this.#uuid = uuid;
  }

  /** A machine that another process has opened. */
  static at(directory: string, gpus: number, uuid: string | null = null): SimulatedMachine {
    return new SimulatedMachine(directory, gpus, uuid);
  }

  static async open(
    gpus: number,
    { uuid, memoryMiB, contextMs, driverVersion }: Description = {},
  ): Promise<SimulatedMachine> {
    if (!existsSync(join(BUILD_DIRECTORY, 'bench'))) throw new Error('the native side is not built: npm run native');
    const machine = new SimulatedMachine(memoryDirectory(), gpus, uuid ?? null);
    await mkdir(machine.statePath);
    const described = {
      driverVersion,
      gpus: Array.from({ length: gpus }, () => ({ uuid, memoryMiB })),
      simulation: { contextMs },
    };
    await writeFile(machine.nodePath, JSON.stringify(described));
    return machine;
  }

  get statePath(): string {
    return join(this.directory, 'state');
  }

  get nodePath(): string {
    return join(this.directory, 'node.json');
  }

  /** The simulated libnvidia-ml, for the agent. */
  static get nvmlPath(): string {
    return join(DIRECT, 'libnvidia-ml.so.1');
  }

  /** The control library in front of the driver. */
  static get controlPath(): string {
    return join(MIRROR, 'libcuda.so.1');
  }

  uuidOf(gpu: number): string {
    if (this.#uuid !== null) return this.#uuid;
    const digit = gpu.toString(16);
    return `GPU-0000000${digit}-0000-0000-0000-00000000000${digit}`;
  }

  start({ name, args, gpu, slice, mpsFolder, output = 'ignore' }: Program): ChildProcess {
    const env = {
      ...this.environment,
      CUDA_VISIBLE_DEVICES: this.uuidOf(gpu),
      LD_LIBRARY_PATH: slice === null ? DIRECT : MIRROR,
      ...(slice === null ? {} : { VGPU_SANDBOX_DIRECTORY: slice }),
      ...(mpsFolder === undefined ? {} : { CUDA_MPS_PIPE_DIRECTORY: mpsFolder }),
    };
    const child = spawn(join(BUILD_DIRECTORY, 'bench', name), args, { env, stdio: ['ignore', output, 'inherit'] });
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    return child;
  }

  /** The program native/bench/witness.c, which answers each line of its input. */
  startWitness(pids: readonly number[]): ChildProcess {
    const child = spawn(join(BUILD_DIRECTORY, 'bench', 'witness'), pids.map(String), {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    return child;
  }

  /** Runs a program to its end and returns its standard output; rejects if it fails. */
  async finish(program: Program): Promise<string> {
    const child = this.start({ ...program, output: 'pipe' });
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    if (code !== 0) throw new Error(`${program.name} ${program.args.join(' ')}: exit code ${code}`);
    return text;
  }

  async status(): Promise<MachineStatus> {
    const lines = (await this.#command('status'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, number>);
    const number = (line: Record<string, number> | undefined, field: string): number => line?.[field] ?? 0;
    const byProcess = (field: string): ReadonlyMap<number, number> =>
      new Map(lines.filter((line) => 'process' in line).map((line) => [number(line, 'process'), number(line, field)]));
    return {
      nowNs: number(lines[0], 'nowNs'),
      busyNs: lines.filter((line) => 'uuid' in line).map((line) => number(line, 'busyNs')),
      workNs: byProcess('workNs'),
      memoryBytes: byProcess('memoryBytes'),
    };
  }

  /** From now on NVML does not report the use of single processes, like GPUs without these counters. */
  async silenceNvml(): Promise<void> {
    await this.#command('fault', 'nvmlDeviceGetProcessUtilization', 'not-supported');
    await this.#command('fault', 'nvmlDeviceGetProcessesUtilizationInfo', 'not-supported');
  }

  async hearNvml(): Promise<void> {
    await this.#command('clear');
  }

  async close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => stop(child)));
    await rm(this.directory, { recursive: true, force: true });
  }

  /** The variables that put a program on this machine. */
  get environment(): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], GPU_SIM_STATE: this.statePath, GPU_SIM_NODE: this.nodePath };
  }

  async #command(...args: string[]): Promise<string> {
    return (await run(join(BUILD_DIRECTORY, 'gpu-sim'), args, { env: this.environment })).stdout;
  }
}

/** Ends a program that this machine started. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
