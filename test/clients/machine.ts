import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeLimits } from '../../src/abi/limits-file.js';
import { LIMITS_FILE, USAGE_FILE } from '../../src/abi/vgpu-abi.js';
import { decodeUsage, encodeUsage } from '../../src/abi/usage-file.js';
import { audit } from '../../src/agent/slices/audit/audit.js';
import { packageFile } from '../../src/host/package-files.js';
import type { Program } from './client.js';
import type { Expectation } from './report.js';

/** The output of one process of a program, and how it ended. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
  /** Null where a signal or the time limit ended it. */
  readonly status: number | null;
}

/** A run of a program: its processes, and what the agent's audit would find in their slice. */
export interface Run {
  readonly outputs: readonly Output[];
  readonly findings: readonly string[];
}

/** The first is the GPU of the simulated driver's default description. */
const GPU_UUIDS = ['GPU-00000000-0000-0000-0000-000000000000', 'GPU-00000000-0000-0000-0000-000000000001'];
const MIB = 2 ** 20;
const LIBRARIES = ['libcuda', 'libnvidia-ml'] as const;
/** How often the slice's usage file is read while a program runs. */
const AUDIT_PERIOD_MS = 50;
const TIMEOUT_MS = 120_000;

/** The reason why no client can run on this machine; null where clients can. */
export function whyNoMachine(): string | null {
  return existsSync(packageFile('native/build/mirror/libcuda.so.1'))
    ? null
    : 'the control library and the simulated driver are not built (npm run native)';
}

/** A machine with one simulated GPU, and containers that have a slice of it. */
export class ClientMachine {
  readonly expectation: Expectation;
  readonly #directory: string;
  #runs = 0;

  constructor(expectation: Expectation) {
    this.expectation = expectation;
    this.#directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gm-clients-'));
    const built = (path: string): string => packageFile(`native/build/${path}`);
    for (const name of ['alone', 'mirror']) mkdirSync(join(this.#directory, name));
    for (const library of LIBRARIES) {
      const soname = `${library}.so.1`;
      copyFileSync(built(`sim/${soname}`), join(this.#directory, 'alone', soname));
      // Copies: the control library looks for the driver in its own folder.
      copyFileSync(built(`mirror/${soname}`), join(this.#directory, 'mirror', soname));
      copyFileSync(built(`mirror/${library}-origin.so.1`), join(this.#directory, 'mirror', `${library}-origin.so.1`));
      for (const name of ['alone', 'mirror']) symlinkSync(soname, join(this.#directory, name, `${library}.so`));
    }
  }

  /** Frees the machine's shared memory. */
  close(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Runs a program on the simulated driver as it is. */
  async alone(program: Program): Promise<Run> {
    return this.#run(program, 'alone', null);
  }

  /** Runs a program behind the control library, in a container that has one slice. */
  async inSlice(program: Program): Promise<Run> {
    const slice = join(this.#directory, `slice-${this.#runs}`);
    const { limitMib, share } = this.expectation;
    mkdirSync(join(slice, 'usage'), { recursive: true });
    const devices = gpusOf(program).map((uuid) => ({
      uuid,
      pciBusId: '',
      memoryBytes: limitMib * MIB,
      share,
      softLimit: null,
    }));
    writeFileSync(join(slice, LIMITS_FILE), encodeLimits({ allocation: 'clients', devices }));
    writeFileSync(join(slice, USAGE_FILE), encodeUsage());
    return this.#run(program, 'mirror', slice);
  }

  async #run(program: Program, libraries: 'alone' | 'mirror', slice: string | null): Promise<Run> {
    const state = join(this.#directory, `state-${this.#runs}`);
    this.#runs += 1;
    const environment: NodeJS.ProcessEnv = {
      ...process.env,
      ...program.environment,
      GPU_SIM_STATE: state,
      LD_LIBRARY_PATH: [join(this.#directory, libraries), ...(program.libraries ?? [])].join(':'),
      CLIENT_LIMIT_MIB: String(this.expectation.limitMib),
      PYTHONPATH: packageFile('test/clients/python'),
    };
    if (slice !== null) environment.VGPU_SANDBOX_DIRECTORY = slice;
    const { computeCapability } = program;
    if (gpusOf(program).length > 1 || computeCapability !== undefined) {
      environment.GPU_SIM_NODE = join(this.#directory, 'node.json');
      const gpus = gpusOf(program).map((uuid) => ({ uuid, computeCapability }));
      writeFileSync(environment.GPU_SIM_NODE, JSON.stringify({ gpus }));
    }
    // The last finding about each process counts: a finding that holds only while the process starts is gone by then.
    const found = new Map<number, string[]>();
    const observe = (): void => {
      if (slice === null) return;
      for (const [pid, findings] of auditSlice(slice, gpusOf(program), this.expectation)) found.set(pid, findings);
    };
    const timer = setInterval(observe, AUDIT_PERIOD_MS);
    try {
      const outputs = await runTogether(program, environment, observe);
      return { outputs, findings: [...new Set([...found.values()].flat())] };
    } finally {
      clearInterval(timer);
      rmSync(state, { recursive: true, force: true });
      if (slice !== null) rmSync(slice, { recursive: true, force: true });
    }
  }
}

function gpusOf({ gpus = 1 }: Program): readonly string[] {
  return GPU_UUIDS.slice(0, gpus);
}

/** Starts all processes of a program, and releases those that hold their memory once all of them have reported it. */
async function runTogether(program: Program, environment: NodeJS.ProcessEnv, ready: () => void): Promise<Output[]> {
  const [file = '', ...args] = program.command;
  const count = program.processes ?? 1;
  let holding = 0;
  const children = Array.from({ length: count }, () =>
    spawn(file, args, { env: environment, stdio: ['pipe', 'pipe', 'pipe'], detached: true }),
  );
  const letGo = (): void => {
    holding += 1;
    if (holding < count) return;
    ready();
    for (const child of children) child.stdin.end();
  };
  return Promise.all(
    children.map(
      (child) =>
        new Promise<Output>((resolve) => {
          let stdout = '';
          let stderr = '';
          let held = false;
          const hold = (): void => {
            if (held) return;
            held = true;
            letGo();
          };
          // The whole process group ends: the children of a shell or a test runner must not outlive it.
          const timer = setTimeout(() => {
            if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
          }, program.timeoutMs ?? TIMEOUT_MS);
          child.stdin.on('error', () => undefined);
          child.stdout.setEncoding('utf8').on('data', (text: string) => {
            stdout += text;
            if (/^holding$/m.test(stdout)) hold();
          });
          child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
          child.on('error', (error) => (stderr += error.message));
          child.on('close', (status) => {
            clearTimeout(timer);
            hold();
            resolve({ stdout, stderr, status });
          });
        }),
    ),
  );
}

/**
 * What the agent would find about each process of a slice, by pid, if the process had greeted the agent and the GPU
 * listed it. A process that holds memory has started; the agent too reports only findings that last.
 */
function auditSlice(
  slice: string,
  gpuUuids: readonly string[],
  { limitMib, share }: Expectation,
): Map<number, string[]> {
  const decoded = decodeUsage(readFileSync(join(slice, USAGE_FILE)));
  if (!decoded.ok) return new Map([[0, [decoded.reason]]]);
  const counters = decoded.usage.devices;
  return new Map(
    decoded.usage.processes.map((slot) => [
      slot.pid,
      audit({
        processes: [{ pid: slot.pid, name: slot.name, greeted: true, claimed: true, active: true }],
        sessions: [{ pid: slot.pid, slot, onGpu: slot.heldBytes.some((bytes) => bytes > 0) }],
        devices: gpuUuids.map((gpuUuid, index) => ({
          gpuUuid,
          memoryLimitBytes: limitMib * MIB,
          usedMemoryBytes: null,
          share,
          launches: counters[index]?.launches ?? 0,
          samples: counters[index]?.samples ?? 0,
          wentBack: false,
          uncountedMemoryBytes: null,
          unchargedTimePpm: null,
        })),
        usesOfOtherGpus: [],
        fileProblem: null,
        fileGrown: null,
      }).map(({ code, message }) => `the audit reports ${code}: ${message.replace(/ \(\d+\)/g, '')}`),
    ]),
  );
}
