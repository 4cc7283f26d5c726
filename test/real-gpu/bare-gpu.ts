import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ActivityFiles } from '../../src/agent/slices/usage/activity-files.js';
import { LimitsWriter } from '../../src/agent/slices/limits/limits-writer.js';
import { precedenceOf } from '../../src/agent/slices/steering/precedence.js';
import { packageFile } from '../../src/host/package-files.js';
import { BudgetOver, type Budget } from './budget.js';
import { outcome, type Outcome } from './container.js';

/** The libraries of a driver, and the GPU that programs use. */
export interface DriverFiles {
  readonly cuda: string;
  readonly nvml: string;
  readonly uuid: string;
}

/** How a program runs. */
export interface Run {
  /** Its slice's directory; absent: without limits. */
  readonly slice?: string | null;
  /** Behind the control library. Absent: in a slice. */
  readonly hooked?: boolean;
  /** It is killed after so many seconds. */
  readonly seconds?: number;
  /** A test, which makes slices of its own, in a folder with this name. */
  readonly test?: string;
}

/** One GPU without an agent: programs use its driver directly, or in slices behind the control library. */
export class BareGpu {
  readonly #directory: string;
  readonly #uuid: string;
  readonly #budget: Budget;
  readonly #environment: Record<string, string | undefined> = {};
  #slices = 0;

  /** `directory` is an empty one. */
  constructor(directory: string, { cuda, nvml, uuid }: DriverFiles, budget: Budget) {
    this.#directory = directory;
    this.#uuid = uuid;
    this.#budget = budget;
    this.#environment['GPU_SIM_STATE'] = process.env['GPU_SIM_STATE'] ?? join(directory, 'state');
    const sandbox = packageFile('native/build/sandbox');
    for (const name of ['direct', 'mirror', 'state', 'slices']) mkdirSync(join(directory, name));
    for (const [name, driver, control] of [
      ['libcuda', cuda, 'libcuda-control.so'],
      ['libnvidia-ml', nvml, 'libnvml-control.so'],
    ] as const) {
      symlinkSync(driver, join(directory, 'direct', `${name}.so.1`));
      symlinkSync(driver, join(directory, 'mirror', `${name}-origin.so.1`));
      copyFileSync(join(sandbox, control), join(directory, 'mirror', `${name}.so.1`));
    }
  }

  /** The control library as programs load it. */
  get controlPath(): string {
    return join(this.#directory, 'mirror', 'libcuda.so.1');
  }

  /** Compiles a C program, and returns its path. It is linked with the control library, which has every call. */
  compile(source: string): string {
    const program = join(this.#directory, source.replaceAll('/', '-').replace(/\.c$/, ''));
    const folders = ['native/include', 'native/test'].map((folder) => `-I${packageFile(folder)}`);
    const libraries = ['libcuda', 'libnvidia-ml'].map((name) => join(this.#directory, 'mirror', `${name}.so.1`));
    const options = ['-std=gnu11', '-O2', ...folders, packageFile(source), ...libraries];
    const ending = ['-Wl,--allow-shlib-undefined', '-pthread', '-ldl', '-lm', '-o', program];
    execFileSync('gcc', [...options, ...ending], { stdio: ['ignore', 'ignore', 'pipe'] });
    return program;
  }

  /**
   * Slices with these hard shares, as an agent makes them; `turns`: they know each other, and take turns. Returns their
   * directories.
   */
  async slices(shares: readonly number[], turns: boolean): Promise<string[]> {
    const directoryOf = (id: string): string => join(this.#directory, 'slices', id);
    const activity = new ActivityFiles(directoryOf, null);
    const device = (share: number) => ({ uuid: this.#uuid, pciBusId: '', memoryBytes: null, share, softLimit: null });
    const made = shares.map((share) => ({ allocation: `slice-${(this.#slices += 1)}`, device: device(share) }));
    const writers: LimitsWriter[] = [];
    for (const { allocation, device: one } of made) {
      mkdirSync(join(directoryOf(allocation), 'usage'), { recursive: true });
      await activity.make(allocation, true);
      writers.push(
        await LimitsWriter.create(join(directoryOf(allocation), 'vgpu.limits'), { allocation, devices: [one] }),
      );
    }
    const wanted = precedenceOf(made.map(({ allocation, device: one }) => ({ allocation, devices: [one] })));
    for (const [at, { allocation }] of made.entries()) {
      const precedence = wanted.get(allocation)?.[0] ?? null;
      if (turns && precedence !== null) {
        await activity.linkClaimants(allocation, [precedence.before]);
        writers[at]?.change(0, { givesWay: precedence.givesWay });
      }
      writers[at]?.close();
    }
    activity.close();
    return made.map(({ allocation }) => directoryOf(allocation));
  }

  /** Throws `BudgetOver` if no time is left. */
  demandTime(): void {
    this.#budget.secondsFor(Infinity);
  }

  /** Variables of all later programs. */
  extend(environment: Readonly<Record<string, string | undefined>>): void {
    Object.assign(this.#environment, environment);
  }

  /** Runs a program; throws `BudgetOver` if the budget ended before it did. */
  async outcome(
    command: readonly string[],
    { slice = null, hooked = slice !== null, seconds = 60, test }: Run,
  ): Promise<Outcome> {
    const limit = this.#budget.secondsFor(seconds);
    const child = spawn(command[0] ?? '', command.slice(1), {
      env: {
        ...process.env,
        ...this.#environment,
        LD_LIBRARY_PATH: join(this.#directory, hooked ? 'mirror' : 'direct'),
        ...(slice === null ? {} : { VGPU_SANDBOX_DIRECTORY: slice }),
        ...(test === undefined ? {} : { GPU_SIM_STATE: this.#folder(test), TEST_CARD_UUID: this.#uuid }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: packageFile('native'),
    });
    const done = await outcome(child, limit);
    if (done.status === null && this.#budget.isOver) throw new BudgetOver();
    return done;
  }

  #folder(name: string): string {
    const path = join(this.#directory, name);
    mkdirSync(path);
    return path;
  }

  /** The output of a program that succeeds. */
  async run(command: readonly string[], how: Run = {}): Promise<string> {
    const { status, stdout, stderr } = await this.outcome(command, how);
    if (status !== 0) throw new Error(`${command.join(' ')}: exit ${status}: ${stderr.trim().slice(-300)}`);
    return stdout.trim();
  }
}
