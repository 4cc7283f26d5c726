import { SUSPENDABLE_KEY } from '../gpu/annotations.js';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KubeletEmulator, type EmulatorOptions } from './kubelet/kubelet.js';
import type { EmulatedPod } from './kubelet/pod.js';
import type { Log } from '../host/log.js';
import type { AgentConfig } from '../agent/config.js';
import type { Agent, AgentSeams } from '../agent/agent.js';
import { buildAgent } from '../agent/run.js';
import { NO_PODS, type AgentPods } from '../agent/allocator/no-pods.js';
import { ANY_GPUS, readSelection, selectionFor } from '../gpu/gpu-selection.js';
import type { PendingContainer } from '../gpu/ledger/pending.js';

export interface SimulatedNodeOptions {
  /** Directory of all files of the node. Keep the path short, because the length of socket paths is limited. */
  readonly directory: string;
  /** Description of the GPUs: JSON or the output of `nvidia-smi topo -m`. */
  readonly gpus: string;
  readonly log: Log;
  readonly config?: Partial<AgentConfig>;
  readonly seams?: AgentSeams;
  readonly kubelet?: Partial<EmulatorOptions>;
  /** Whether the agent knows the requests of waiting pods, as with an API server; false means standalone. */
  readonly knowsPods?: boolean;
  /** When the containers of a pod are killed at last; absent: no pod is being deleted. */
  readonly killedAtMs?: (podUid: string) => number | null;
}

/** The agent's configuration on a simulated node whose files are all in `directory`. */
export function simulatedConfig(directory: string, config: Partial<AgentConfig> = {}): AgentConfig {
  const at = (name: string): string => join(directory, name);
  return {
    driver: 'sim',
    simNodePath: at('gpus'),
    simStatePath: null,
    simDevicePath: at('devices'),
    nvmlPath: null,
    healthConfigPath: null,
    extraConfigPath: null,
    volumeConfigPath: null,
    hostRoot: '/',
    nativePath: at('native'),
    interposition: 'library-path',
    cdiPath: at('cdi'),
    queryAddress: '127.0.0.1',
    queryPort: 0,
    probes: null,
    tls: null,
    tlsSelfSigned: false,
    tokenReview: false,
    displaySocket: at('display.sock'),
    kubeconfig: null,
    standalone: true,
    nodeName: 'simulated',
    nodeLabels: new Map(),
    malformedNodeLabels: [],
    samplePeriodMs: 1_000,
    virtualManagerPath: at('vm'),
    devicePluginPath: at('plugins'),
    pluginProxyPath: null,
    podResourcesSocket: at('pod-resources/kubelet.sock'),
    checkpointPath: at('checkpoint'),
    usageTmpfs: false,
    shareMode: true,
    migStrategy: 'none',
    allocation: 'plugin',
    draGpus: new Set(),
    draEvictFailed: false,
    pluginRegistryPath: at('registry'),
    draPath: at('dra'),
    allocationCheckPeriodMs: 30_000,
    containerRuntimeEndpoint: null,
    dockerEndpoint: null,
    nriSocket: null,
    cpuAffinity: 'off',
    runtimeRequestTimeoutMs: 5_000,
    waitTimeoutMs: 60_000,
    auditPolicy: 'report',
    memoryOversubscription: 1,
    allowUnenforced: false,
    allowSuspend: false,
    suspendIdleMs: null,
    suspendFactor: 1,
    allowResize: false,
    logLevel: 'info',
    ...config,
  };
}

/**
 * A node in one directory: the real agent on simulated GPUs, and an emulated kubelet. Demo, tests and benchmarks use
 * it.
 */
export class SimulatedNode {
  readonly kubelet: KubeletEmulator;
  readonly config: AgentConfig;
  readonly #options: SimulatedNodeOptions;
  #agent: Agent | null = null;

  constructor(options: SimulatedNodeOptions) {
    this.#options = options;
    this.config = simulatedConfig(options.directory, options.config);
    this.kubelet = new KubeletEmulator({
      directory: this.config.devicePluginPath,
      podResourcesSocket: this.config.podResourcesSocket,
      ...options.kubelet,
    });
  }

  get agent(): Agent {
    if (this.#agent === null) throw new Error('the agent is not running');
    return this.#agent;
  }

  /** Starts the kubelet, then the agent, and waits until both resources are registered. */
  async start(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    await writeFile(join(this.#options.directory, 'gpus'), this.#options.gpus);
    await this.kubelet.start();
    await this.startAgent();
  }

  async startAgent(): Promise<void> {
    const pods = this.#options.knowsPods === true ? { pods: podsOf(this.kubelet, this.#options.killedAtMs) } : {};
    const evidence: AgentSeams['evidence'] = {
      remainsOf: async (podUids) =>
        new Map(
          [...podUids].map((podUid) => {
            const running = this.kubelet.runningOf(podUid);
            return [podUid, running === null ? { running: new Set(), any: false } : { running, any: true }];
          }),
        ),
    };
    const agent = await buildAgent(this.config, this.#options.log, { evidence, ...pods, ...this.#options.seams });
    await agent.start();
    this.#agent = agent;
    await this.kubelet.ready();
  }

  async stopAgent(): Promise<void> {
    await this.#agent?.stop();
    this.#agent = null;
  }

  async stop(): Promise<void> {
    await this.stopAgent();
    await this.kubelet.stop();
  }
}

/** The API server's view of the pods that wait for this kubelet. */
function podsOf(kubelet: KubeletEmulator, killedAtMs: SimulatedNodeOptions['killedAtMs']): AgentPods {
  const find = (matches: (pod: EmulatedPod) => boolean): EmulatedPod | undefined =>
    [...kubelet.pods, ...kubelet.waiting].find(matches);
  return {
    ...NO_PODS,
    killedAtMs: (podUid) => killedAtMs?.(podUid) ?? null,
    pending: () =>
      kubelet.waiting.flatMap((pod) =>
        [...pod.initContainers, ...pod.containers].map(({ name, cores, memoryBlocks }, index) => ({
          podUid: pod.uid,
          container: name,
          cores,
          memoryBlocks,
          hint: [],
          isInit: index < pod.initContainers.length,
          ...selectionOf(pod, name),
        })),
      ),
    isSuspendable: (podUid) => {
      const pod = find((entry) => entry.uid === podUid);
      return pod === undefined ? null : pod.annotations?.[SUSPENDABLE_KEY] === 'true';
    },
    ended: () => kubelet.ended,
    exists: (podUid) => find((pod) => pod.uid === podUid) !== undefined,
    ask: async () => undefined,
    annotations: (podUid) => {
      const pod = find((entry) => entry.uid === podUid);
      return pod === undefined ? null : new Map(Object.entries(pod.annotations ?? {}));
    },
    onAnnotations: (listener) => kubelet.onAnnotations(listener),
    uidOf: (namespace, name) => find((pod) => pod.namespace === namespace && pod.name === name)?.uid ?? null,
    nameOf: (podUid) => {
      const pod = find((entry) => entry.uid === podUid);
      return pod === undefined ? null : { namespace: pod.namespace, pod: pod.name };
    },
  };
}

function selectionOf(
  { annotations = {} }: EmulatedPod,
  container: string,
): Pick<PendingContainer, 'selection' | 'brokenRule'> {
  const read = readSelection((key) => annotations[key]);
  if (!read.ok) return { brokenRule: read.reason };
  return read.selection === ANY_GPUS ? {} : { selection: selectionFor(read.selection, container) };
}
