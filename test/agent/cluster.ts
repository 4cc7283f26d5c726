import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { SimulatedNode, type SimulatedNodeOptions } from '../../src/simulation/simulated-node.js';
import type { Admission } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { scratchDirectory } from '../scratch.js';
import { SIX_GPUS } from './gpus.js';

export const NODE_NAME = 'simulated';

export interface SubmitOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  /** The owner that re-creates the pod. */
  readonly controller?: { readonly kind: string; readonly name: string };
}

/** A simulated node whose agent has an API server, which also receives what a kubelet would write. */
export class Cluster {
  readonly server = new ApiServer();
  readonly node: SimulatedNode;
  readonly #directory: string;

  constructor(directory: string, options: Partial<SimulatedNodeOptions> = {}) {
    this.#directory = directory;
    this.node = new SimulatedNode({
      directory: join(directory, 'n'),
      gpus: SIX_GPUS,
      log: silentLog(),
      ...options,
      config: { standalone: false, kubeconfig: join(directory, 'kubeconfig'), nodeName: NODE_NAME, ...options.config },
    });
  }

  async start(): Promise<void> {
    await this.server.start();
    this.server.seed('nodes', { metadata: { name: NODE_NAME } });
    await writeFile(join(this.#directory, 'kubeconfig'), kubeconfig({ url: this.server.url }, {}));
    await this.node.start();
  }

  async stop(): Promise<void> {
    await this.node.stop();
    await this.server.stop();
  }

  /** The pod appears at the API server, bound to this node. */
  submit(pod: EmulatedPod, options: SubmitOptions = {}): void {
    this.server.seed('pods', podObject(pod, options));
  }

  /** The kubelet admits the pod, or fails it with the message of a real one. */
  async admit(pod: EmulatedPod): Promise<Admission> {
    const admission = await this.node.kubelet.admit(pod);
    this.server.edit('pods', pod.namespace, pod.name, (object) => ({ ...object, status: admissionStatus(admission) }));
    return admission;
  }

  /** Resolves when the agent knows the pod. */
  async known(pod: EmulatedPod): Promise<void> {
    await eventually(
      () => this.node.agent.pods.uidOf(pod.namespace, pod.name) === pod.uid,
      `the agent knows ${pod.name}`,
    );
  }

  object(pod: EmulatedPod): KubeObject | null {
    return this.server.read('pods', pod.namespace, pod.name);
  }

  annotation(pod: EmulatedPod, key: string): string | undefined {
    return this.object(pod)?.metadata.annotations?.[`tencent.com/${key}`];
  }

  eventsOn(pod: EmulatedPod): KubeObject[] {
    return this.server
      .all('events')
      .filter((event) => (event.involvedObject as { readonly uid?: unknown }).uid === pod.uid);
  }
}

/** A pod as the API server shows it once it is bound to this node. */
export function podObject(pod: EmulatedPod, { annotations = {}, controller }: SubmitOptions = {}): KubeObject {
  return {
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      annotations,
      ...(controller === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'apps/v1', ...controller, uid: 'owner', controller: true }] }),
    },
    spec: {
      nodeName: NODE_NAME,
      initContainers: pod.initContainers.map(containerSpec),
      containers: pod.containers.map(containerSpec),
    },
    status: { phase: 'Pending' },
  };
}

/** The status that a kubelet writes for an admitted or a failed pod, with the messages of a real one. */
export function admissionStatus(admission: Admission): Record<string, unknown> {
  const startTime = new Date().toISOString();
  if (admission.ok) return { phase: 'Pending', startTime };
  const message = `Allocate failed due to rpc error: code = Unknown desc = ${admission.message.replace('UnexpectedAdmissionError: ', '')}, which is unexpected`;
  return { phase: 'Failed', reason: 'UnexpectedAdmissionError', message, startTime };
}

function containerSpec({ name, cores, memoryBlocks, env = {} }: EmulatedContainer): unknown {
  return {
    name,
    env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
    resources: {
      limits: { 'tencent.com/vcuda-core': String(cores), 'tencent.com/vcuda-memory': String(memoryBlocks) },
    },
  };
}

/** A started cluster of one node that ends with the test. */
export async function startedCluster(t: Test, options?: Partial<SimulatedNodeOptions>): Promise<Cluster> {
  const cluster = new Cluster(await scratchDirectory(t), options);
  t.teardown(() => cluster.stop());
  await cluster.start();
  return cluster;
}
