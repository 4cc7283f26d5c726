import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentConfig } from '../../src/agent/config.js';
import { simulatedConfig } from '../../src/simulation/simulated-node.js';
import { KubeletEmulator, type Admission } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE, type ResourceKind } from '../../src/gpu/resources.js';
import { devicePluginProto } from '../../src/rpc/proto.js';
import { admissionStatus, NODE_NAME, podObject } from '../agent/cluster.js';
import { cards } from '../agent/gpus.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { certificateAuthority } from '../harness/certificate.js';

/** Whether the agent has an API server, and how the agent connects to it. */
export type Cluster = 'none' | 'http' | 'https';

export const GPUS = 4;

export interface FaultNodeOptions {
  readonly directory: string;
  /** The folder of the device files of all runs' nodes: making them anew for each run would be the slowest step. */
  readonly devices: string;
  readonly cluster: Cluster;
  readonly order: () => readonly ResourceKind[];
  /** Whether pods with resource claims run on this node too. */
  readonly claims: boolean;
}

const authority = await certificateAuthority();
const identity = await authority.server(['localhost', '127.0.0.1']);

/** All of a node that outlives its agent: the kubelet, the API server, the files on disk. */
export class FaultNode {
  readonly kubelet: KubeletEmulator;
  readonly server: ApiServer | null;
  readonly config: AgentConfig;
  readonly #options: FaultNodeOptions;
  readonly #ca: string | undefined;

  constructor(options: FaultNodeOptions) {
    const { directory, cluster } = options;
    const isHttps = cluster === 'https';
    const apiServer: Partial<AgentConfig> =
      cluster === 'none' ? {} : { standalone: false, kubeconfig: join(directory, 'kubeconfig') };
    this.#options = options;
    this.#ca = isHttps ? authority.certificate : undefined;
    this.config = simulatedConfig(directory, {
      ...apiServer,
      simDevicePath: options.devices,
      nodeName: NODE_NAME,
      samplePeriodMs: 600_000,
      // GPUs change their mode in this period.
      ...(options.claims ? { allocationCheckPeriodMs: 1_000 } : {}),
    });
    this.server = cluster === 'none' ? null : new ApiServer(isHttps ? { tls: identity } : {});
    this.kubelet = new KubeletEmulator({
      directory: this.config.devicePluginPath,
      podResourcesSocket: this.config.podResourcesSocket,
      order: options.order,
    });
  }

  async open(): Promise<void> {
    const { directory } = this.#options;
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'gpus'), cards(GPUS));
    await this.kubelet.start();
    if (this.server === null) return;
    await this.server.start();
    this.server.seed('nodes', { metadata: { name: NODE_NAME } });
    const { url } = this.server;
    await writeFile(
      join(directory, 'kubeconfig'),
      kubeconfig(this.#ca === undefined ? { url } : { url, ca: this.#ca }, {}),
    );
  }

  async close(): Promise<void> {
    await this.kubelet.stop();
    await this.server?.stop();
  }

  /** tkestack gpu-manager ran here, and one of its pods is still running: `cores` and memory of one GPU. */
  async inheritOldPod(pod: EmulatedPod, gpu: number, withCheckpoint: boolean): Promise<void> {
    const [wanted] = pod.containers;
    if (wanted === undefined) return;
    const { virtualManagerPath, checkpointPath } = this.config;
    await mkdir(join(virtualManagerPath, pod.uid), { recursive: true });
    await mkdir(checkpointPath, { recursive: true });
    const entry = {
      Devices: [`/dev/nvidia${gpu}`],
      Cores: wanted.cores,
      Memory: wanted.memoryBlocks * MEMORY_BLOCK_BYTES,
    };
    if (withCheckpoint)
      await writeFile(
        join(checkpointPath, CHECKPOINT_FILE),
        JSON.stringify({ PodGPUMapping: { [pod.uid]: { [wanted.name]: entry } } }),
      );
    const response = devicePluginProto().v1beta1.ContainerAllocateResponse.serialize({
      annotations: { 'tencent.com/vcuda-device': `/dev/nvidia${gpu}` },
    });
    const held = { podUid: pod.uid, container: wanted.name, response };
    const ids = (prefix: string, count: number): string[] =>
      Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
    await this.kubelet.inherit(pod, [
      { ...held, kind: 'core', ids: ids(CORE_RESOURCE, wanted.cores) },
      { ...held, kind: 'memory', ids: ids(`${MEMORY_RESOURCE}-${MEMORY_BLOCK_BYTES}`, wanted.memoryBlocks) },
    ]);
    this.server?.seed('pods', {
      ...podObject(pod),
      status: { phase: 'Running', containerStatuses: [{ name: wanted.name, state: { running: {} } }] },
    });
  }

  submit(pod: EmulatedPod): void {
    this.server?.seed('pods', podObject(pod));
  }

  async admit(pod: EmulatedPod): Promise<Admission> {
    const admission = await this.kubelet.admit(pod);
    this.server?.edit('pods', pod.namespace, pod.name, (object) => ({ ...object, status: admissionStatus(admission) }));
    return admission;
  }

  /** Starts a container, as the kubelet does, and updates the API server. Rejects if the agent refuses or is down. */
  async startContainer(pod: EmulatedPod, container: string): Promise<void> {
    await this.kubelet.startContainer(pod.uid, container);
    this.server?.edit('pods', pod.namespace, pod.name, (object) => {
      const status = object.status as { readonly containerStatuses?: readonly { readonly name: string }[] };
      const others = (status.containerStatuses ?? []).filter(({ name }) => name !== container);
      return {
        ...object,
        status: {
          ...status,
          phase: 'Running',
          containerStatuses: [...others, { name: container, state: { running: {} } }],
        },
      };
    });
  }

  end(pod: EmulatedPod): void {
    this.kubelet.remove(pod.uid);
    this.server?.remove('pods', pod.namespace, pod.name);
  }
}
