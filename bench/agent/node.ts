import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { AgentProcess } from '../../test/harness/gpu-machine/agent-process.js';
import { SimulatedMachine } from '../sim/machine.js';
import { removeFolder } from '../summary/leftovers.js';

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
    const machine = await SimulatedMachine.open(gpus);
    const directory = await mkdtemp(join(tmpdir(), 'gm-'));
    const agent = new AgentProcess({
      directory,
      machine,
      environment: { ...manifestEnvironment(), ...(canMount() ? USAGE_TMPFS : {}) },
      ...(main === undefined ? {} : { main }),
    });
    const node = new BenchNode(machine, agent, directory);
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
    await this.agent.end();
    await this.agent.kubelet.stop();
    await this.machine.close();
    removeFolder(this.#directory);
  }
}

/** Only root can mount; without that the agent checks the sizes of files more often. */
const canMount = (): boolean => process.getuid?.() === 0;

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
