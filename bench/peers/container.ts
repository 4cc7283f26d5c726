import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BUILD_DIRECTORY, SimulatedMachine, stop, type Description, type MachineStatus } from '../sim/machine.js';
import { hamiRegion, install, makeFolders, type Environment, type Library, type Limits } from './library.js';

const SCRIPT = fileURLToPath(new URL('../../../bench/peers/in-container.sh', import.meta.url));
const AGENT = fileURLToPath(new URL('agent-process.js', import.meta.url));
const PROGRAMS = join(BUILD_DIRECTORY, 'bench');
const PROGRAM = join(PROGRAMS, 'any_library');
const MIB = 2 ** 20;
/** Not the default of zeros, which vgpu-manager takes for no GPU. */
const GPU_UUID = 'GPU-12345678-0000-0000-0000-000000000001';

/** What a program printed, or why it did not end well. */
export type Outcome = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string };

/** A simulated machine of one GPU, for the containers of one measurement; peers know no second machine in a process. */
export class PeerMachine {
  readonly #machine: SimulatedMachine;
  readonly #peers: string;
  readonly #children = new Set<ChildProcess>();
  #agent: { readonly child: ChildProcess; readonly answers: Interface } | null = null;
  #made = 0;

  private constructor(machine: SimulatedMachine, peers: string) {
    this.#machine = machine;
    this.#peers = peers;
  }

  static async open(peers: string, description: Description = {}): Promise<PeerMachine> {
    return new PeerMachine(await SimulatedMachine.open(1, { uuid: GPU_UUID, ...description }), peers);
  }

  get directory(): string {
    return this.#machine.directory;
  }

  status(): Promise<MachineStatus> {
    return this.#machine.status();
  }

  /** A container with a library in front of the driver. */
  async container(library: Library, limits: Limits): Promise<PeerContainer> {
    this.#made += 1;
    const directory = join(this.directory, `container-${this.#made}`);
    await makeFolders(directory);
    const slice = library === 'ours with agent' ? await this.#slice(limits) : null;
    const environment = await install(library, { peers: this.#peers, directory, gpuUuid: GPU_UUID, limits, slice });
    return new PeerContainer(this, directory, environment);
  }

  /** Starts a program with its arguments in a container. */
  start(directory: string, { preload, variables }: Environment, command: readonly string[]): ChildProcess {
    const env = {
      ...this.#machine.environment,
      ...variables,
      KEEP: `${this.#peers}:${BUILD_DIRECTORY}:${this.directory}`,
      LD_LIBRARY_PATH: join(directory, 'lib'),
      ...(preload === null ? {} : { PRELOAD: preload }),
    };
    // Neither unshare nor the script forks: the program keeps the process id.
    const all = ['--mount', '--propagation', 'private', SCRIPT, directory, ...command];
    const child = spawn('unshare', all, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    // A program may end before its input does.
    child.stdin.on('error', () => undefined);
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    return child;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => stop(child)));
    if (this.#agent !== null) {
      const ended = new Promise((resolve) => this.#agent?.child.once('exit', resolve));
      this.#agent.child.stdin?.end();
      await ended;
    }
    await this.#machine.close();
  }

  async #slice({ share, memoryMib }: Limits): Promise<string> {
    if (this.#agent === null) {
      const child = spawn(process.execPath, [AGENT, this.directory, GPU_UUID], { stdio: ['pipe', 'pipe', 'inherit'] });
      this.#agent = { child, answers: createInterface({ input: child.stdout }) };
    }
    const { child, answers } = this.#agent;
    const answer = new Promise<string>((resolve, reject) => {
      answers.once('line', resolve);
      child.once('exit', (code) => reject(new Error(`the agent ended with exit code ${code}`)));
    });
    const limits = {
      gpu: 0,
      share: share ?? 100,
      softLimit: null,
      ...(memoryMib === null ? {} : { memoryBytes: memoryMib * MIB }),
    };
    child.stdin?.write(`${JSON.stringify(limits)}\n`);
    return answer;
  }
}

/** A container; several programs may run in it. */
export class PeerContainer {
  readonly #machine: PeerMachine;
  readonly #directory: string;
  readonly #environment: Environment;

  constructor(machine: PeerMachine, directory: string, environment: Environment) {
    this.#machine = machine;
    this.#directory = directory;
    this.#environment = environment;
  }

  /** Starts `any_library`. */
  start(...args: readonly string[]): ChildProcess {
    return this.#machine.start(this.#directory, this.#environment, [PROGRAM, ...args]);
  }

  /** Starts another program of native/bench. */
  startProgram(name: string, ...args: readonly string[]): ChildProcess {
    return this.#machine.start(this.#directory, this.#environment, [join(PROGRAMS, name), ...args]);
  }

  /** The file that the programs of a container of HAMi share. */
  get sharedRegion(): string {
    return hamiRegion(this.#directory);
  }

  /** Runs a program to its end, or ends it after `timeoutMs`. */
  async finish(timeoutMs: number, ...args: readonly string[]): Promise<Outcome> {
    const child = this.start(...args);
    const [text, errors] = [textOf(child.stdout), textOf(child.stderr)];
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    clearTimeout(timer);
    if (code === 0) return { ok: true, text: (await text).trim() };
    const last = (await errors).trim().split('\n').at(-1) ?? '';
    return { ok: false, why: code === null ? `not ended after ${timeoutMs / 1000} s` : last || `exit code ${code}` };
  }
}

/** All that a program writes. */
export async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

/** The path of the program inside a container: that of the machine. */
export const PROGRAM_PATH = PROGRAM;
