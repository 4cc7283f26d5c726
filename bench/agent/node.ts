import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { unmount } from '../../src/host/mounts.js';
import { AgentProcess } from '../../test/harness/gpu-machine/agent-process.js';
import { SimulatedMachine } from '../sim/machine.js';
import { residentMib } from './process-cost.js';

/** The folder of a node is named after the process of its benchmark. */
const PREFIX = 'gmb-';
const LEFTOVER = /^gmb-(\d+)-/u;
const MAX_S = '3600';
/** As the DaemonSet runs the agent; the flag stands in its arguments. */
const USAGE_TMPFS = { GPU_MANAGER_USAGE_TMPFS: 'true' };
const MANIFEST = fileURLToPath(new URL('../../../daemonset.yaml', import.meta.url));

/** A simulated node of eight GPUs: the agent is a process of its own, and each container has a process. */
export class BenchNode {
  readonly machine: SimulatedMachine;
  readonly agent: AgentProcess;
  readonly #directory: string;
  #pods = 0;

  private constructor(machine: SimulatedMachine, agent: AgentProcess, directory: string) {
    this.machine = machine;
    this.agent = agent;
    this.#directory = directory;
  }

  /** `main`: the file that Node runs as the agent; absent: that of this folder. */
  static async open(gpus: number, main?: string): Promise<BenchNode> {
    await removeLeftovers();
    const machine = await SimulatedMachine.open(gpus);
    const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
    const agent = new AgentProcess({
      directory,
      machine,
      environment: { ...manifestEnvironment(), ...(canMount() ? USAGE_TMPFS : {}) },
      ...(main === undefined ? {} : { main }),
    });
    const node = new BenchNode(machine, agent, directory);
    closeOnSignals();
    openNodes.add(node);
    await agent.kubelet.start();
    return node;
  }

  /**
   * Starts one more container that has a part of a GPU, with a program that uses the GPU in this manner (see
   * native/bench/tenant.c); null: without a program.
   */
  async run(cores: number, memoryBlocks: number, manner: string | null): Promise<void> {
    this.#pods += 1;
    const uid = `uid-${this.#pods}`;
    const admission = await this.agent.kubelet.admit({
      uid,
      namespace: 'bench',
      name: `pod-${this.#pods}`,
      initContainers: [],
      containers: [{ name: 'main', cores, memoryBlocks }],
    });
    const [given] = admission.ok ? admission.containers : [];
    if (given === undefined) throw new Error(admission.ok ? 'the pod has no container' : admission.message);
    await this.agent.kubelet.startContainer(uid, 'main');
    const slice = given.mounts.find(({ containerPath }) => containerPath === '/etc/vcuda')?.hostPath ?? '';
    const gpu = Number(/nvidia(\d+)$/.exec(given.annotations['tencent.com/vcuda-device'] ?? '')?.[1]);
    if (manner !== null) this.machine.start({ name: 'tenant', args: [MAX_S, manner], gpu, slice });
  }

  async close(): Promise<void> {
    openNodes.delete(this);
    await this.agent.end();
    await this.agent.kubelet.stop();
    await this.machine.close();
    await removeFolder(this.#directory);
  }
}

/** Nodes that are not closed. */
const openNodes = new Set<BenchNode>();
let closesOnSignals = false;

/** A signal closes the nodes before the benchmark ends. */
function closeOnSignals(): void {
  if (closesOnSignals) return;
  closesOnSignals = true;
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => {
      const closed = Promise.allSettled([...openNodes].map((node) => node.close()));
      void closed.then(() => process.exit(status));
    });
}

/** Unmounts everything below a folder, and removes it. */
async function removeFolder(directory: string): Promise<void> {
  for (const path of mountsBelow(directory)) unmount(path);
  await rm(directory, { recursive: true, force: true });
}

/** Removes the folders of benchmarks that were killed. */
export async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, pid] = LEFTOVER.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await removeFolder(join(tmpdir(), name));
  }
}

/** Only root can mount; without that the agent checks the sizes of files more often. */
const canMount = (): boolean => process.getuid?.() === 0;

/** The mount points below a directory, the innermost first. */
function mountsBelow(directory: string): string[] {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  return [...new Set(points)].filter((point) => point.startsWith(`${directory}/`)).toReversed();
}

interface DaemonSet {
  readonly kind: string;
  readonly spec?: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value?: string }[] }[];
      };
    };
  };
}

/** The agent's environment from the DaemonSet, without what differs between nodes. */
function manifestEnvironment(): Readonly<Record<string, string>> {
  const documents = parseAllDocuments(readFileSync(MANIFEST, 'utf8')).map((document) => document.toJS() as DaemonSet);
  const containers = documents.find(({ kind }) => kind === 'DaemonSet')?.spec?.template.spec.containers ?? [];
  return Object.fromEntries(
    (containers[0]?.env ?? []).flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
  );
}

/** An idle Node process: milliseconds from start to end, and its resident memory. */
export async function emptyNode(): Promise<{ readonly ms: number; readonly residentMib: number }> {
  const begun = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  const ms = performance.now() - begun;
  const waiting = spawn(process.execPath, ['-e', "process.stdin.resume(); process.stdout.write('.')"], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(waiting.stdout, 'data');
  const resident = residentMib(waiting.pid ?? 0);
  const gone = once(waiting, 'exit');
  waiting.stdin.end();
  await gone;
  return { ms, residentMib: resident };
}
