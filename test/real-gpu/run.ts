import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CONTAINER_SLICE_DIRECTORY } from '../../src/gpu/container-edits.js';
import { packageFile } from '../../src/host/package-files.js';
import { BareGpu } from './bare-gpu.js';
import { Budget } from './budget.js';
import { endPrograms, outcome, type Container, type Outcome } from './container.js';
import { limitsByDriver, noDriverLimits } from './driver-limits.js';
import { measureLaw, USUAL_OPTIONS } from './law.js';
import { writeLaw } from './law-report.js';
import { RealNode } from './real-node.js';
import { servicesBesideTraining } from './service.js';

/**
 * This machine's GPU. First, in six minutes and without an agent: what it does between contexts, shares by the old law
 * and the new one, and the cost of calls; the tables go into docs/benchmarks/real-gpu.md. Then the whole agent:
 * registration, allocation, mirrored libraries, memory limits as clients of the CUDA runtime see them, shares of one
 * and several containers, and what the agent reports. Needs an NVIDIA driver and gcc; the agent also needs root and
 * python3; PyTorch and CuPy are used where they are installed.
 *
 *     npm run test:gpu [-- --minutes N] [--seconds N] [--keep DIRECTORY] [NAME...]
 *
 * Prints one line a check, and ends by itself after ten minutes (`--minutes`) with what it has. `law` is the name of
 * the first part. Exit code 77: this machine has no GPU.
 */
const PORT = 5699;
const MIB = 2 ** 20;
const BLOCK_MIB = 256;

const args = process.argv.slice(2);
const option = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const seconds = Number(option('--seconds') ?? 5);
const keep = option('--keep');
const minutes = Number(option('--minutes') ?? 10);
const wanted = args.filter((argument, at) => !argument.startsWith('-') && !args[at - 1]?.startsWith('-'));

const skipReason = whyNot();
if (skipReason !== null) {
  console.log(`skip: ${skipReason}`);
  process.exit(77);
}
const directory = mkdtempSync(join(tmpdir(), 'gm-gpu-'));
const spin = join(directory, 'spin');
const loadGenerator = join(directory, 'tenant');
const hoarder = join(directory, 'hoarder');
const node = new RealNode(join(directory, 'node'), PORT);
/** Containers share the root file system of the machine: their mount point is made there. */
const madeSlicePath = !existsSync(CONTAINER_SLICE_DIRECTORY);
const budget = new Budget(60 * minutes);
const budgetTimer = setTimeout(endPrograms, 60_000 * minutes);
let failures = 0;
let leftOut = 0;

function whyNot(): string | null {
  try {
    execFileSync('nvidia-smi', ['-L'], { stdio: 'ignore' });
    return null;
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? 'no GPU';
  }
}

/** Why no container can be started here; null if one can. */
function whyNoContainers(): string | null {
  if (process.getuid?.() !== 0) return 'not root: containers need mounts of their own';
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
    return null;
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? 'no mounts';
  }
}

const say = (line: string): void => console.log(`${(performance.now() / 1000).toFixed(0).padStart(4)}s ${line}`);

const isWanted = (name: string): boolean => wanted.length === 0 || wanted.some((text) => name.includes(text));

async function check(name: string, test: () => Promise<string>): Promise<void> {
  if (!isWanted(name)) return;
  try {
    budget.secondsFor(Infinity);
    say(`ok - ${name}: ${await test()}`);
  } catch (error) {
    // A program that was ended with the budget says nothing about the check.
    if (budget.isOver) {
      leftOut += 1;
      return;
    }
    failures += 1;
    say(`NOT OK - ${name}: ${(error as Error).message}`);
  }
}

function demand(holds: boolean, text: string): string {
  if (!holds) throw new Error(text);
  return text;
}

const saidBy = ({ status, stdout, stderr }: Outcome): string =>
  `exit ${status}: ${[...stdout.trim().split('\n').slice(-4), ...stderr.trim().split('\n').slice(-6)].join(' | ')}`;

const tenant = packageFile('native/test/gpu/runtime_tenant.py');

/** The rate of a load generator in a container, or of the driver alone. */
async function rate(container: Container | null, kernel: string, ...way: string[]): Promise<number> {
  const command = [spin, String(seconds), kernel, ...way];
  const child = container === null ? spawn(spin, command.slice(1)) : container.start(command);
  const done = await outcome(child, seconds + 30);
  const found = Number(done.stdout.trim());
  if (done.status !== 0 || !(found > 0)) throw new Error(`spin ${command.slice(1).join(' ')}: ${saidBy(done)}`);
  if (done.stderr !== '') say(`# spin: ${done.stderr.trim()}`);
  return found;
}

const wholes = new Map<string, Promise<number>>();

/** What the GPU does for a load generator without limits. */
function wholeRate(kernel: string, ...ways: readonly string[]): Promise<number> {
  const name = [kernel, ...ways].join(' ');
  const known = wholes.get(name) ?? rate(null, kernel, ...ways);
  wholes.set(name, known);
  return known;
}

async function ratesOf(kernel: string, shares: readonly number[], ways: readonly string[] = []): Promise<string> {
  const whole = await wholeRate(kernel, ...ways);
  const containers: Container[] = [];
  for (const share of shares) containers.push(await node.run(share, 8));
  const rates = await measured(containers, () => Promise.all(containers.map((each) => rate(each, kernel, ...ways))));
  const got = rates.map((each) => (100 * each) / whole);
  const text = shares.map((share, at) => `asked ${share} got ${got[at]?.toFixed(2)}`).join(', ');
  return demand(
    shares.every((share, at) => Math.abs((got[at] ?? 0) - share) <= 3),
    `${text} (alone ${whole.toFixed(1)}/s)`,
  );
}

/** Runs programs in containers, says what the agent reports of them at the end, and removes them. */
async function measured<T>(containers: readonly Container[], programs: () => Promise<T>): Promise<T> {
  try {
    const running = programs();
    await Promise.race([running.catch(() => undefined), delay((seconds + 0.8) * 1000)]);
    const lines = (await node.page('/metrics')).split('\n');
    for (const { pod } of containers)
      say(`#   ${pod}: ${REPORTED.map((name) => `${name} ${metric(lines, name, pod)}`).join(', ')}`);
    return await running;
  } finally {
    for (const container of containers) node.remove(container);
  }
}

/** Metrics of a container that tell how its share came about. */
const REPORTED = [
  'used_ratio',
  'gpu_seconds_total',
  'control_error_ratio',
  'charge_correction_ratio',
  'time_drift_ratio',
];

function metric(lines: readonly string[], name: string, pod: string): number {
  const line = lines.find((each) => each.startsWith(`vgpu_container_${name}{`) && each.includes(`"${pod}"`));
  return Number(line?.split(' ')[1]);
}

async function inSlice(cores: number, blocks: number, command: readonly string[], limit = 60): Promise<Outcome> {
  const container = await node.run(cores, blocks);
  try {
    return await container.finish(command, limit);
  } finally {
    node.remove(container);
  }
}

async function runs(cores: number, blocks: number, command: readonly string[]): Promise<string> {
  const done = await inSlice(cores, blocks, command);
  return demand(done.status === 0 || done.status === 77, saidBy(done));
}

/** The driver's files of this machine, from the linker's cache. */
function driverFile(name: string): string {
  const entries = execFileSync('ldconfig', ['-p']).toString().split('\n');
  const path = entries.find((entry) => entry.includes(`${name} `) && /x86-64|AArch64/.test(entry))?.split(' => ')[1];
  if (path === undefined) throw new Error(`${name} is not in the linker's cache`);
  return realpathSync(path);
}

async function law(): Promise<void> {
  const folder = join(directory, 'law');
  mkdirSync(folder);
  const files = { cuda: driverFile('libcuda.so.1'), nvml: driverFile('libnvidia-ml.so.1'), uuid: query('uuid') };
  const figures = await measureLaw(new BareGpu(folder, files, budget), {
    ...USUAL_OPTIONS,
    say: (line) => say(`# ${line}`),
  });
  const machine = `${query('name')}, driver ${query('driver_version')}, ${new Date().toISOString().slice(0, 10)}.`;
  writeLaw(packageFile('docs/benchmarks/real-gpu.md'), figures, machine);
  leftOut += figures.leftOut.length;
}

if (isWanted('law'))
  await law().catch((error: unknown) => {
    failures += 1;
    say(`NOT OK - law: ${(error as Error).stack ?? String(error)}`);
  });
const skipped = whyNoContainers();
if (skipped !== null) say(`# the agent is left out: ${skipped}`);
else if (!budget.isOver && (wanted.length === 0 || wanted.some((text) => text !== 'law'))) await wholeAgent();
clearTimeout(budgetTimer);
rmSync(directory, { recursive: true, force: true });
if (leftOut > 0) say(`# the budget of ${minutes} minutes left no time for ${leftOut} of them`);
say(failures === 0 ? 'all checks passed' : `${failures} checks failed`);
process.exitCode = failures === 0 ? 0 : 1;

async function wholeAgent(): Promise<void> {
  try {
    compile('native/test/gpu/spin.c', spin);
    compile('native/bench/tenant.c', loadGenerator, '-lm');
    // Kernels of every run have the length that they have on the idle GPU.
    delete process.env['SPIN_ROUNDS_PER_MS'];
    const calibrated = await outcome(spawn(spin, ['0', '1000']), 60);
    process.env['SPIN_ROUNDS_PER_MS'] = /^rounds_per_ms (\d+)/m.exec(calibrated.stderr)?.[1];
    process.env['TEST_ROUNDS_PER_MS'] = /^test_rounds_per_ms (\d+)/m.exec(calibrated.stderr)?.[1];
    const began = performance.now();
    await node.start(budget.secondsFor(60));
    say(`the agent registered after ${(performance.now() - began).toFixed(0)} ms`);

    const memoryMib = Number(query('memory.total'));
    await check('inventory', async () => {
      const [core, memory] = [node.kubelet.allocatable('core'), node.kubelet.allocatable('memory')];
      return demand(
        core === 100 && memory === Math.floor(memoryMib / BLOCK_MIB),
        `${core} cores, ${memory} blocks of ${memoryMib} MiB`,
      );
    });
    await check('doctor', async () => {
      const child = spawn(process.execPath, [packageFile('dist/src/cli/main.js'), 'doctor', ...node.flags]);
      const done = await outcome(child, 60);
      return demand(done.status === 0, `exit ${done.status}\n${done.stdout}${done.stderr}`);
    });
    await Promise.all(
      ['torch', 'cupy', 'nccl'].map((client) =>
        check(`memory of ${client}`, async () => {
          const done = await inSlice(20, 16, ['python3', tenant, client, String(16 * BLOCK_MIB)]);
          return demand(done.status === 0 || done.status === 77, saidBy(done));
        }),
      ),
    );
    await Promise.all(
      ['train', 'graphs', 'triton', 'jax', 'nvml', 'pools'].map((program) =>
        check(`program ${program}`, () => runs(16, 48, ['python3', packageFile('test/real-gpu/programs.py'), program])),
      ),
    );
    await check('program killed', () => runs(16, 48, ['python3', packageFile('test/real-gpu/programs.py'), 'killed']));
    await check('a whole GPU', async () => {
      const done = await inSlice(100, 0, ['python3', tenant, 'cupy', '1000']);
      const shown = Number(/shows as (\d+) MiB/.exec(done.stdout)?.[1]);
      return demand(shown > 0.95 * memoryMib || done.status === 77, saidBy(done));
    });
    await check('memory limits by the driver', async () => {
      const none = noDriverLimits(query('driver_version'));
      if (none !== null) return `skipped: ${none}`;
      compile('test/harness/gpu-machine/hoarder.c', hoarder);
      const lines: string[] = [];
      for await (const line of limitsByDriver(node, hoarder, 32)) {
        lines.push(line);
        say(`#   ${line}`);
      }
      return `${lines.length} observations`;
    });
    await check('use that the agent reports', async () => {
      const container = await node.run(30, 16);
      const program = rate(container, '2000');
      await delay((seconds + 0.8) * 1000);
      const lines = (await node.page('/metrics')).split('\n');
      await program;
      node.remove(container);
      const used = metric(lines, 'used_ratio', container.pod);
      const memory = metric(lines, 'memory_used_bytes', container.pod) / MIB;
      return demand(
        Math.abs(used - 0.3) < 0.05 && memory > 50 && metric(lines, 'processes', container.pod) === 1,
        `used ${used}, memory ${memory.toFixed(0)} MiB`,
      );
    });
    for (const [kernel, shares, ...ways] of [
      ['2000', [30]],
      ['200', [50], 'sync'],
      ['20', [50]],
      ['20000', [20]],
      ['2000', [30, 70]],
      ['20000', [50, 50]],
      ['2000', [10, 20, 30, 40]],
      ['mixed', [30]],
      ['mixed', [30, 30]],
    ] as readonly (readonly [string, readonly number[], ...string[]])[])
      await check(`share of ${kernel} us ${[...ways, ...shares].join(' ')}`, () => ratesOf(kernel, shares, ways));
    await check('share of mixed 20 beside 20000 us 50', async () => {
      const [alone, batchAlone] = [await wholeRate('mixed'), await wholeRate('20000')];
      const [service, batch] = [await node.run(20, 8), await node.run(50, 8)];
      const [a, b] = await measured([service, batch], () =>
        Promise.all([rate(service, 'mixed'), rate(batch, '20000')]),
      );
      const got = [(100 * a) / alone, (100 * b) / batchAlone] as const;
      return demand(
        Math.abs(got[0] - 20) < 4 && Math.abs(got[1] - 50) < 4,
        `asked 20 got ${got[0].toFixed(2)}, asked 50 got ${got[1].toFixed(2)}`,
      );
    });
    // What the GPU's own time slices lose, which no limit can give back.
    for (const pair of [
      ['2000', '2000'],
      ['20000', '20000'],
      ['mixed', '20000'],
    ] as const)
      await check(`without limits, ${pair.join(' beside ')} us`, async () => {
        const whole = [await wholeRate(pair[0]), await wholeRate(pair[1])] as const;
        const got = await Promise.all(pair.map((kernel) => rate(null, kernel)));
        const parts = got.map((each, at) => (100 * each) / (whole[at] ?? 0));
        return `${parts.map((part) => part.toFixed(2)).join(' and ')}, together ${parts.reduce((a, b) => a + b, 0).toFixed(2)}`;
      });
    for (const [pattern, kernelUs] of [
      ['infer:30', 20_000],
      ['decode:30', 20_000],
      ['infer:30', 2_000],
    ] as const)
      await check(`service ${pattern} beside a training of ${kernelUs} us`, async () => {
        const programs = { tenant: loadGenerator, spin };
        for await (const line of servicesBesideTraining(node, programs, { pattern, kernelUs, seconds: 2 * seconds }))
          say(`#   ${line}`);
        return 'measured';
      });
    await check('share of a matrix product', async () => {
      const command = ['python3', packageFile('native/test/gpu/torch_tenant.py'), String(seconds), '4096'];
      const whole = Number((await outcome(spawn('python3', command.slice(1)), 60)).stdout);
      const container = await node.run(40, 16);
      const done = await measured([container], () => container.finish(command, 60));
      const got = (100 * Number(done.stdout)) / whole;
      return demand(
        Math.abs(got - 40) < 3,
        `asked 40 got ${got.toFixed(2)} (alone ${whole.toFixed(0)}/s) ${done.stderr}`,
      );
    });
    await check('usage', async () => (await node.page('/usage')).slice(0, 300));
  } catch (error) {
    failures += 1;
    say(`NOT OK - ${(error as Error).stack ?? String(error)}`);
  } finally {
    if (keep !== undefined) {
      mkdirSync(keep, { recursive: true });
      for (const path of ['/metrics', '/usage'])
        writeFileSync(join(keep, `${path.slice(1)}.txt`), await node.page(path).catch(String));
    }
    await node.stop();
    if (madeSlicePath && existsSync(CONTAINER_SLICE_DIRECTORY)) rmdirSync(CONTAINER_SLICE_DIRECTORY);
    if (keep !== undefined) cpSync(node.logPath, join(keep, 'agent.log'));
  }
}

function query(field: string): string {
  return (
    execFileSync('nvidia-smi', [`--query-gpu=${field}`, '--format=csv,noheader,nounits'])
      .toString()
      .split('\n')[0] ?? ''
  );
}

/** A C program of the driver's library, for this machine. */
function compile(source: string, program: string, ...libraries: readonly string[]): void {
  const folders = ['native/include', 'native/test'].map((folder) => `-I${packageFile(folder)}`);
  const options = ['-std=gnu11', '-O2', ...folders, packageFile(source), '-o', program];
  execFileSync('gcc', [...options, '-l:libcuda.so.1', ...libraryFolder(), ...libraries]);
}

/** The folder of the driver's library for the linker, which reads no cache. */
function libraryFolder(): string[] {
  const line = execFileSync('ldconfig', ['-p'])
    .toString()
    .split('\n')
    .find((entry) => /libcuda\.so\.1 .*64/.test(entry));
  const path = line?.split(' => ')[1];
  return path === undefined ? [] : [`-L${path.slice(0, path.lastIndexOf('/'))}`, '-Wl,--allow-shlib-undefined'];
}
