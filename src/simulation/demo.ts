import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { decodeLimits } from '../abi/limits-file.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { parseSimNode, printSimNode, type SimNode } from '../agent/gpus/sim/node.js';
import type { GivenContainer } from './kubelet/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from './kubelet/pod.js';
import type { Log } from '../host/log.js';
import { packageFile } from '../host/package-files.js';
import type { JsonRecord } from '../kube/json.js';
import { ClaimAct } from './demo-claims.js';
import { DemoCluster, LIVE_NODE, type LivePod } from './demo-cluster.js';
import { DemoPrograms, type ProbeTask } from './demo-programs.js';
import { expect, WrongAnswer } from './demo-step.js';
import { SimulatedNode } from './simulated-node.js';

/** Four GPUs of 16 GiB. 0-1 and 2-3 are NVLink pairs, each on its own CPU socket. */
const DEMO_NODE = `\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tNV4\tSYS\tSYS
GPU1\tNV4\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tNV4
GPU3\tSYS\tSYS\tNV4\tX
`;

const BUILT_NATIVE = packageFile('native/build');
/** Pods that `liveOn` starts: memory of their programs, and the lengths of their working and resting phases. */
const LIVELY = [
  { namespace: 'vision', name: 'resnet-train-0', cores: 50, memoryBlocks: 32, mib: 6_000, workMs: 60_000, restMs: 500 },
  { namespace: 'search', name: 'query-encoder', cores: 30, memoryBlocks: 16, mib: 2_500, workMs: 4_000, restMs: 3_000 },
  { namespace: 'research', name: 'notebook-jonas', cores: 20, memoryBlocks: 8, mib: 700, workMs: 1_500, restMs: 8_000 },
  {
    namespace: 'research',
    name: 'protein-fold-0',
    cores: 200,
    memoryBlocks: 96,
    mib: 9_000,
    workMs: 20_000,
    restMs: 5_000,
  },
] as const;

/** Where a server of the demonstration listens. */
export interface DemoAddress {
  readonly port: number;
  readonly address: string;
}

/** The demonstration: the agent on a simulated node, programs that run in its slices, and a cluster around it. */
export class Demo {
  readonly node: SimulatedNode;
  readonly programs: DemoPrograms;
  /** The part with resource claims. */
  readonly claims: ClaimAct;
  readonly directory: string;
  readonly log: Log;
  readonly #given = new Map<string, readonly GivenContainer[]>();
  readonly #cluster: DemoCluster | null;

  /** All files are in `directory`, whose path must be short because sockets are among them. */
  constructor(directory: string, log: Log, query: DemoAddress, console: DemoAddress | null) {
    this.directory = directory;
    this.log = log;
    this.#cluster = console === null ? null : new DemoCluster({ directory: join(directory, 'k'), log, console });
    const statePath = join(directory, 'machine');
    const gpus = printSimNode(demoGpus());
    const config = {
      queryPort: query.port,
      queryAddress: query.address,
      simStatePath: statePath,
      nativePath: BUILT_NATIVE,
      memoryOversubscription: 1.5,
      allowUnenforced: true,
      ...(this.#cluster === null
        ? {}
        : { standalone: false, kubeconfig: this.#cluster.kubeconfigPath, nodeName: LIVE_NODE }),
    };
    this.node = new SimulatedNode({ directory, gpus, log, knowsPods: true, config, seams: { graceMs: 0 } });
    this.programs = new DemoPrograms(statePath, this.node.config.simNodePath ?? '');
    this.claims = new ClaimAct(join(directory, 'dra'), BUILT_NATIVE, log);
  }

  async start(): Promise<void> {
    await this.#cluster?.open();
    await this.node.start();
  }

  /** Port of the console; null without a cluster. */
  get consolePort(): number | null {
    return this.#cluster?.port ?? null;
  }

  get kubeconfigPath(): string | null {
    return this.#cluster?.kubeconfigPath ?? null;
  }

  async stop(): Promise<void> {
    this.programs.end();
    await this.claims.stop();
    await this.#cluster?.stop();
    await this.node.stop();
  }

  /** Admits and starts every container of a pod, and checks that each got exactly what it requested. */
  async runPod(pod: EmulatedPod): Promise<readonly GivenContainer[]> {
    const { kubelet } = this.node;
    const admission = await kubelet.admit(pod);
    expect(admission.ok, admission.ok ? '' : `refused: ${admission.message}`);
    if (!admission.ok) return [];
    for (const wanted of [...pod.initContainers, ...pod.containers]) {
      await kubelet.startContainer(pod.uid, wanted.name);
      const given = admission.containers.find((container) => container.name === wanted.name);
      if (given !== undefined) await checkLimits(wanted, given);
    }
    this.#given.set(pod.name, admission.containers);
    return admission.containers;
  }

  /**
   * Starts pods whose programs alternate between work and rest until the demonstration stops, so that the page shows
   * activity.
   */
  async liveOn(): Promise<void> {
    const running: LivePod[] = [];
    for (const { namespace, name, cores, memoryBlocks, mib, workMs, restMs } of LIVELY) {
      const pod = { ...demoPod(name, [main(cores, memoryBlocks)]), namespace };
      running.push({ pod: apiPod(pod), containers: await this.runPod(pod) });
      void this.#takeTurns(name, ['work', mib, workMs], restMs);
    }
    await this.#cluster?.start(this.node, running);
  }

  async #takeTurns(pod: string, task: ProbeTask, restMs: number): Promise<void> {
    try {
      for (;;) {
        await this.runProgram(pod, task);
        await delay(restMs, undefined, { ref: false });
      }
    } catch {
      // The demonstration stops and kills its programs.
    }
  }

  /** Runs a program in the first container of a started pod. */
  runProgram(pod: string, task: ProbeTask): Promise<string> {
    const container = this.#given.get(pod)?.[0];
    if (container === undefined) throw new WrongAnswer(`pod ${pod} was not started`);
    return this.programs.run(container, task);
  }
}

function demoGpus(): SimNode {
  const parsed = parseSimNode(DEMO_NODE);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.node;
}

export function demoPod(
  name: string,
  containers: readonly EmulatedContainer[],
  initContainers: readonly EmulatedContainer[] = [],
): EmulatedPod {
  return { uid: `demo-${name}`, namespace: 'demo', name, containers, initContainers };
}

/** A pod as the API server has it. */
function apiPod({ uid, namespace, name, containers }: EmulatedPod): JsonRecord {
  return {
    metadata: { uid, namespace, name },
    spec: {
      containers: containers.map((container) => {
        const amounts = {
          cpu: '4',
          memory: '16Gi',
          [CORE_RESOURCE]: String(container.cores),
          [MEMORY_RESOURCE]: String(container.memoryBlocks),
        };
        return { name: container.name, resources: { limits: amounts, requests: amounts } };
      }),
    },
  };
}

export const main = (cores: number, memoryBlocks: number): EmulatedContainer => ({ name: 'main', cores, memoryBlocks });

async function checkLimits(wanted: EmulatedContainer, given: GivenContainer): Promise<void> {
  const directory = given.mounts.find((mount) => mount.containerPath === '/etc/vcuda')?.hostPath ?? '';
  const decoded = decodeLimits(await readFile(join(directory, 'vgpu.limits')));
  expect(decoded.ok, decoded.ok ? '' : `limits of ${wanted.name}: ${decoded.reason}`);
  if (!decoded.ok) return;
  const share = decoded.limits.devices.reduce((sum, device) => sum + device.share, 0);
  const bytes = decoded.limits.devices.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0);
  expect(share === wanted.cores, `${wanted.name} may use ${share} cores instead of ${wanted.cores}`);
  expect(
    bytes === wanted.memoryBlocks * MEMORY_BLOCK_BYTES,
    `${wanted.name} may use ${bytes} bytes instead of ${wanted.memoryBlocks} blocks`,
  );
}
