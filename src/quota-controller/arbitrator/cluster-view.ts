import {
  consumerProblems,
  reservedBeside,
  totalReserved,
  type ConsumerProblem,
  type ConsumerSpec,
  type RunningPod,
  type Situation,
  type StorageSituation,
  type ArbitratedNode,
  type FittingShape,
  type WaitingPod,
} from '../../quota/index.js';
import type { Quantities } from '../../manifests/quantities.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { selects, selectorKey } from '../../manifests/node-selector.js';
import { toleratesAll } from '../../manifests/taint.js';
import { ALLOCATIONS_PATH, CONSUMERS_PATH } from '../../kube/quota/names.js';
import type { KubeObject } from '../../kube/object.js';
import { readAllocation, type AllocationObject } from '../../kube/quota/allocation-object.js';
import { clusterShapes, readClusterNode, type ClusterNode } from '../../cluster/shapes/cluster-shapes.js';
import { fitsOnGpus, type GpuHolding } from '../../cluster/shapes/gpu-holding.js';
import { readClusterPod, type ClusterPod } from './cluster-pod.js';
import { readConsumer, type ConsumerObject } from '../../kube/quota/consumer-object.js';
import { readDisruptionBudget, type DisruptionBudget } from '../../kube/disruption-budget.js';
import { KnownObjects } from './known-objects.js';
import type { Node } from '../../kube/node.js';
import { readResourceQuota, type NamespaceQuota } from './resource-quota.js';
import type { ServedPolicy } from './served-policy.js';
import { readVolumeClaim, type VolumeClaim } from './volume-claim.js';

/** The arbitrator's own writes to a pod, which the watch may not show yet. */
export interface PodMark {
  readonly isLeaving: boolean;
  readonly isProtected: boolean;
}

/** The fields of a namespace that the arbitrator keeps. */
export interface Namespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

function readNamespace(object: unknown): Namespace | null {
  const { metadata } = object as KubeObject;
  const isTerminating = metadata?.deletionTimestamp !== undefined;
  return metadata?.name === undefined || isTerminating ? null : { name: metadata.name, labels: metadata.labels ?? {} };
}

/** A system consumer even where no Consumer object says so. */
const SYSTEM_NAMESPACE = 'kube-system';

/** The arbitrator's view of the cluster, from watches. */
export class ClusterView {
  readonly consumers: KnownObjects<ConsumerObject>;
  readonly allocations: KnownObjects<AllocationObject>;
  readonly #nodes: Informer<ClusterNode>;
  readonly #pods: Informer<ClusterPod>;
  readonly #namespaces: Informer<Namespace>;
  readonly #budgets: Informer<DisruptionBudget>;
  readonly #quotas: Informer<NamespaceQuota>;
  readonly #volumeClaims: Informer<VolumeClaim>;
  readonly #storageCapacity: () => Quantities;
  #isChanged = true;

  /** `storageCapacity`: the storage capacity; no limit for a resource that it does not name. */
  constructor(api: WatchableApi, policy: ServedPolicy, storageCapacity: () => Quantities = () => new Map()) {
    this.#storageCapacity = storageCapacity;
    this.consumers = new KnownObjects(api.informer({ path: CONSUMERS_PATH, keep: readConsumer }));
    this.allocations = new KnownObjects(api.informer({ path: ALLOCATIONS_PATH, keep: readAllocation }));
    this.#nodes = api.informer({ path: '/api/v1/nodes', keep: readClusterNode });
    this.#pods = api.informer({ path: '/api/v1/pods', keep: readClusterPod });
    this.#namespaces = api.informer({ path: '/api/v1/namespaces', keep: readNamespace });
    this.#budgets = api.informer({
      path: `/apis/policy/${policy.budgets}/poddisruptionbudgets`,
      keep: (object) => readDisruptionBudget(object, policy.budgets),
    });
    this.#quotas = api.informer({ path: '/api/v1/resourcequotas', keep: readResourceQuota });
    this.#volumeClaims = api.informer({ path: '/api/v1/persistentvolumeclaims', keep: readVolumeClaim });
  }

  start(): void {
    for (const informer of this.#informers()) {
      informer.onChange(() => (this.#isChanged = true));
      informer.start();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers().map((informer) => informer.stop()));
  }

  /** True when all informers are synced: a partial view looks like a cluster with too few nodes or without budgets. */
  get synced(): boolean {
    return this.#informers().every(({ synced }) => synced);
  }

  /** Whether anything changed since the last call. */
  takeChanged(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  pods(): ReadonlyMap<string, ClusterPod> {
    return new Map(this.#pods.values().map((pod) => [pod.uid, pod]));
  }

  /**
   * Returns the cluster at this moment. A node that accepts no pods counts with the requests of its pods as capacity,
   * and these pods are not evicted: no waiting pod could use their room. Pods of deleted nodes do not count.
   */
  situation(now: number, markOf: (uid: string) => PodMark, beyondQuota: ReadonlySet<string> = new Set()): Situation {
    const nodes = new Map(this.#nodes.values().map((node) => [node.name, node]));
    const capacity = new Map<string, number>();
    for (const { takesPods, allocatable } of nodes.values()) if (takesPods) addTo(capacity, allocatable);
    const budgetsOf = this.budgetsByPod();
    const unreadable = new Set(
      this.consumers
        .values()
        .filter(({ problems }) => problems.length > 0)
        .map(({ name }) => name),
    );
    const pods: RunningPod[] = [];
    const waiting: WaitingPod[] = [];
    const pending = new Map<string, Map<string, number>>();
    const has = (resource: string): boolean => (capacity.get(resource) ?? 0) > 0;
    const eligible = eligibility([...nodes.values()]);
    for (const pod of this.#pods.values()) {
      const { uid, namespace: consumer, uses, priority, startedAt } = pod;
      if (pod.node === null) {
        const asked = pending.get(consumer) ?? new Map<string, number>();
        pending.set(consumer, asked);
        addTo(asked, uses);
        waiting.push({
          id: uid,
          consumer,
          uses,
          priority,
          since: pod.createdAt,
          isBeyondQuota: beyondQuota.has(uid),
          nodes: eligible(pod),
          nominated: pod.nominatedNode,
        });
        continue;
      }
      const node = nodes.get(pod.node);
      if (node === undefined) continue;
      const mark = markOf(uid);
      const isLeaving = pod.isLeaving || mark.isLeaving;
      if (!node.takesPods && !isLeaving) addTo(capacity, uses);
      const budgetKeys = budgetsOf(pod);
      pods.push({
        id: uid,
        consumer,
        node: pod.node,
        place: JSON.stringify(pod.gpus.gpus),
        uses,
        priority,
        startedAt,
        isLeaving,
        isBeyondQuota: beyondQuota.has(uid),
        budgets: budgetKeys,
        // The eviction API refuses pods with more than one budget.
        isProtected: pod.isUnevictable || !node.takesPods || budgetKeys.length > 1 || unreadable.has(consumer),
        isDeferred: mark.isProtected,
      });
    }
    return {
      now,
      capacity,
      consumers: this.#specs(),
      pods: pods.map((pod) => ({ ...pod, uses: presentOnly(pod.uses, has) })),
      pending: new Map([...pending].map(([name, asked]) => [name, presentOnly(asked, has)])),
      disruptions: this.disruptions(),
      nodes: this.#arbitratedNodes(),
      waiting,
      storage: this.#storage(),
    };
  }

  /** How many evictions each disruption budget allows now. */
  disruptions(): ReadonlyMap<string, number> {
    return new Map(this.#budgets.values().map(({ key, allowed }) => [key, allowed]));
  }

  /** Returns the disruption budgets of a pod, as of now. */
  budgetsByPod(): (pod: Pick<ClusterPod, 'namespace' | 'labels'>) => readonly string[] {
    const budgets = new Map<string, DisruptionBudget[]>();
    for (const budget of this.#budgets.values())
      budgets.set(budget.namespace, [...(budgets.get(budget.namespace) ?? []), budget]);
    return ({ namespace, labels }) =>
      (budgets.get(namespace) ?? []).filter((budget) => budget.selects(labels)).map(({ key }) => key);
  }

  #storage(): StorageSituation {
    const [used, pending] = [new Map<string, Map<string, number>>(), new Map<string, Map<string, number>>()];
    for (const { namespace, asks, isBound } of this.#volumeClaims.values()) {
      const side = isBound ? used : pending;
      const sum = side.get(namespace) ?? new Map<string, number>();
      side.set(namespace, sum);
      addTo(sum, asks);
    }
    return { capacity: this.#storageCapacity(), used, pending };
  }

  /** Nodes that accept pods. Where the agent reports GPUs, the fit simulation places requests as the agent would. */
  #arbitratedNodes(): readonly ArbitratedNode[] {
    const pods = this.pods();
    const holdingsOf = (ids: readonly { readonly id: string }[]): readonly GpuHolding[] =>
      ids.flatMap(({ id }) => pods.get(id)?.gpus ?? []);
    return this.#nodes
      .values()
      .filter(({ takesPods }) => takesPods)
      .map(({ name, allocatable, podSlots, inventory }) => ({
        name,
        allocatable,
        podSlots,
        ...(inventory === null
          ? {}
          : {
              fits: (pod: WaitingPod, staying: readonly RunningPod[], held: readonly WaitingPod[]) =>
                holdingsOf([pod]).every((asked) => fitsOnGpus(inventory, asked, holdingsOf([...staying, ...held]))),
            }),
      }));
  }

  /** Problems of each Consumer with regard to other Consumers, ResourceQuotas and the capacity. */
  problems(compute: Quantities): ReadonlyMap<string, readonly ConsumerProblem[]> {
    const all = this.consumers.values();
    const capacity = new Map([...compute, ...this.#storageCapacity()]);
    const reserved = totalReserved(all.map(({ spec }) => spec));
    const quotas = new Map<string, Map<string, number>>();
    for (const { namespace, hard } of this.#quotas.values()) {
      const least = quotas.get(namespace) ?? new Map<string, number>();
      quotas.set(namespace, least);
      for (const [resource, amount] of hard) least.set(resource, Math.min(amount, least.get(resource) ?? Infinity));
    }
    return new Map(
      all.map(({ name, spec }) => {
        // The others are passed as one sum: a thousand sums over a thousand Consumers would take a second.
        const others = reservedBeside(spec, reserved);
        return [
          name,
          consumerProblems(spec, { capacity, others: [{ name: '', reserved: others }], quotaHard: quotas.get(name) }),
        ];
      }),
    );
  }

  /** How often the requests that pods make still fit; at most `most` of them. */
  fittingShapes(most: number): Promise<readonly FittingShape[]> {
    return clusterShapes(this.#nodes.values(), this.#pods.values(), most);
  }

  withoutConsumer(): readonly Namespace[] {
    return this.#namespaces.values().filter(({ name }) => this.consumers.get(name) === null);
  }

  /** Every namespace is a consumer, and so is each Consumer object whose namespace does not exist yet. */
  #specs(): readonly ConsumerSpec[] {
    const specs = new Map<string, ConsumerSpec>(this.#namespaces.values().map(({ name }) => [name, { name }]));
    for (const { name, spec } of this.consumers.values()) specs.set(name, spec);
    const system = specs.get(SYSTEM_NAMESPACE);
    if (system !== undefined) specs.set(SYSTEM_NAMESPACE, { ...system, isSystem: system.isSystem ?? true });
    return [...specs.values()];
  }

  #informers(): readonly Pick<Informer<unknown>, 'start' | 'stop' | 'synced' | 'onChange'>[] {
    return [
      this.consumers.informer,
      this.allocations.informer,
      this.#nodes,
      this.#pods,
      this.#namespaces,
      this.#budgets,
      this.#quotas,
      this.#volumeClaims,
    ];
  }
}

/** For each pod the nodes that its selectors, affinity and tolerations allow; equal pods share the set. */
function eligibility(nodes: readonly Node[]): (pod: ClusterPod) => ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>();
  return ({ selector, tolerations }) => {
    const key = JSON.stringify([selectorKey(selector), tolerations]);
    const found =
      known.get(key) ??
      new Set(
        nodes
          .filter(({ name, labels, taints }) => selects(selector, name, labels) && toleratesAll(tolerations, taints))
          .map(({ name }) => name),
      );
    known.set(key, found);
    return found;
  };
}

function addTo(sum: Map<string, number>, amounts: Quantities): void {
  for (const [resource, amount] of amounts) sum.set(resource, (sum.get(resource) ?? 0) + amount);
}

/** Keeps the resources that the cluster has. The others cannot be granted or overused. */
function presentOnly(amounts: Quantities, has: (resource: string) => boolean): Quantities {
  return [...amounts.keys()].every(has) ? amounts : new Map([...amounts].filter(([resource]) => has(resource)));
}
