import { CORE_RESOURCE } from '../gpu/resources.js';
import { systemClock } from '../host/clock.js';
import type { KubeClient } from '../kube/client.js';
import { text, timestamp, type JsonRecord } from '../kube/json.js';
import { readNode } from '../kube/node.js';
import { readPod, type Pod } from '../kube/pod.js';
import { readConsumer } from '../kube/quota/consumer-object.js';
import { readGroup } from '../kube/quota/group-object.js';
import { allocationReport } from '../quota-controller/arbitrator/allocation-report.js';
import { openKubeClient } from '../kube/open-client.js';
import { groupReport } from '../quota-controller/controller/group-report.js';
import { KubeStore } from '../quota-controller/store/kube-store.js';
import { arbitrate, createEngine, evaluate, NO_MEMORY, type Demand, type QuotaEngine } from '../quota/index.js';
import type { ApiObjects } from './api-objects.js';
import { DEMO_KINDS, manifestOf, type DemoWorkload } from './demo-workloads.js';

/** Groups in GPUs and GPU-hours, parents first, and the weights of their namespaces. */
const GROUPS = [
  { name: 'company', parent: '', gpus: '19.6', hours: 400, weight: null },
  { name: 'vision', parent: 'company', gpus: '3', hours: 100, weight: 1 },
  { name: 'research', parent: 'company', gpus: '10.6', hours: 40, weight: 2 },
  { name: 'search', parent: 'company', gpus: '6', hours: 200, weight: 1 },
] as const;

/** The resources that fair shares are computed of. */
const SHARED = [CORE_RESOURCE];

/**
 * Quota and fair shares of the simulated cluster, by the real engine and the real arbitration, as objects of its API.
 */
export class DemoQuota {
  readonly #engine: QuotaEngine;
  readonly #objects: ApiObjects;
  readonly #client: KubeClient;

  private constructor(engine: QuotaEngine, objects: ApiObjects, client: KubeClient) {
    this.#engine = engine;
    this.#objects = objects;
    this.#client = client;
  }

  /** Keeps the ledgers in the API, where commands of quota read them. */
  static async open(objects: ApiObjects, kubeconfig: string): Promise<DemoQuota> {
    const client = await openKubeClient(kubeconfig, systemClock);
    const engine = await createEngine({ store: new KubeStore({ api: client, clock: systemClock }) });
    for (const { name, parent, gpus, hours, weight } of GROUPS) {
      const hard = { gpus, 'cash/gpus': hours };
      const made = await engine.createGroup({ name, parent, hard });
      if (!made.allowed) throw new Error(`group ${name}: ${made.message}`);
      objects.put('bizgroupresourcequotas', { metadata: { name }, spec: { parentBizGroup: parent, hard } });
      if (weight !== null) objects.put('consumers', { metadata: { name }, spec: { weight } });
    }
    return new DemoQuota(engine, objects, client);
  }

  async close(): Promise<void> {
    await this.#engine.close();
    this.#client.close();
  }

  /** Admits a workload to the group of its namespace, or reports that its pods are refused, as Kubernetes does. */
  async admit(workload: DemoWorkload): Promise<void> {
    const { namespace, kind, name } = workload;
    const decision = await this.#engine.admit(demandOf(workload));
    if (decision.allowed) this.#objects.put(DEMO_KINDS[kind].plural, manifestOf(workload));
    else
      this.#objects.put('events', {
        ...{ metadata: { name: `${name}.refused`, namespace }, type: 'Warning', reason: 'FailedCreate', count: 3 },
        message: `Error creating: admission webhook "gpu-manager-quota" denied the request: ${decision.message}`,
        involvedObject: { kind, namespace, name },
        lastTimestamp: timestamp(Date.now()),
        source: { component: 'replicaset-controller' },
      });
  }

  /** Counts the hours of a pod since its start. */
  async started(workload: DemoWorkload, pod: string, since: number): Promise<void> {
    await this.#engine.podStarted({ pod, workload: demandOf(workload).workload, since });
  }

  /** Writes use of the groups and fair shares of the namespaces. */
  report(): void {
    const now = Date.now();
    for (const object of this.#objects.all('bizgroupresourcequotas')) {
      const status = groupReport(readGroup(object), this.#engine.status(text(object.metadata['name'])), null, now);
      this.#objects.put('bizgroupresourcequotas', { ...object, status });
    }
    const pods = this.#objects.all('pods').map(readPod);
    const consumers = this.#objects.all('consumers').flatMap((object) => readConsumer(object) ?? []);
    const ofConsumers = pods.filter(({ namespace }) => consumers.some(({ name }) => name === namespace));
    const plan = arbitrate({
      ...{ now, capacity: capacityOf(this.#objects.all('nodes')), disruptions: new Map() },
      consumers: consumers.map(({ spec }) => spec),
      pods: ofConsumers
        .filter(({ node }) => node !== null)
        .map((pod) => ({
          ...{ id: pod.uid, consumer: pod.namespace, uses: usesOf(pod), priority: pod.priority },
          startedAt: pod.admittedAt,
        })),
      pending: pendingOf(ofConsumers.filter(({ node }) => node === null)),
    });
    for (const allocation of plan.allocations) {
      const weight = consumers.find(({ name }) => name === allocation.name)?.spec.weight ?? 1;
      const status = allocationReport({ allocation, weight, memory: NO_MEMORY, now }, {});
      this.#objects.put('allocations', { metadata: { name: allocation.name }, status: { ...status } });
    }
  }
}

function demandOf(workload: DemoWorkload): Demand {
  const evaluation = evaluate(manifestOf(workload));
  if (!evaluation.ok || evaluation.demand === null) throw new Error(`${workload.name} has no demand`);
  return evaluation.demand;
}

function usesOf(pod: Pod): ReadonlyMap<string, number> {
  const needs = pod.needs();
  return new Map(SHARED.map((resource) => [resource, needs.ok ? Number(needs.requests[resource] ?? 0) : 0]));
}

function pendingOf(pods: readonly Pod[]): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const pending = new Map<string, Map<string, number>>();
  for (const pod of pods) {
    const sum = pending.get(pod.namespace) ?? new Map<string, number>();
    for (const [resource, amount] of usesOf(pod)) sum.set(resource, (sum.get(resource) ?? 0) + amount);
    pending.set(pod.namespace, sum);
  }
  return pending;
}

function capacityOf(nodes: readonly JsonRecord[]): ReadonlyMap<string, number> {
  const read = nodes.flatMap((node) => readNode(node) ?? []);
  return new Map(
    SHARED.map((resource) => [resource, read.reduce((sum, node) => sum + (node.allocatable.get(resource) ?? 0), 0)]),
  );
}
