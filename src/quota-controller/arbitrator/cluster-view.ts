import {
  consumerProblems,
  type ConsumerProblem,
  type ConsumerSpec,
  type Quantities,
  type RunningPod,
  type Situation,
  type ArbitratedNode,
  type WaitingPod,
} from '../../quota/arbitrator/index.js';
import type { NodeInventory } from '../../gpu/node-inventory.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { selects, selectorKey } from '../../kube/node-selector.js';
import { toleratesAll } from '../../kube/taint.js';
import { ALLOCATIONS_PATH, CONSUMERS_PATH } from '../names.js';
import type { KubeObject } from '../object.js';
import { readAllocation, type AllocationObject } from './allocation-object.js';
import { readClusterPod, type ClusterPod } from './cluster-pod.js';
import { readConsumer, type ConsumerObject } from './consumer-object.js';
import { readDisruptionBudget, type DisruptionBudget } from './disruption-budget.js';
import { fitsOnGpus, inventoryOf, type GpuHolding } from './gpu-holding.js';
import { KnownObjects } from './known-objects.js';
import { readNode, type Node } from '../../kube/node.js';
import { readResourceQuota, type NamespaceQuota } from './resource-quota.js';
import type { ServedPolicy } from './served-policy.js';

/** What the arbitrator knows of a pod beside the pod: what it just did to it. */
export interface PodMark {
  readonly isLeaving: boolean;
  readonly isProtected: boolean;
}

/** A node, and its GPUs as the node agent shows them. */
interface ClusterNode extends Node {
  readonly inventory: NodeInventory | null;
}

function readClusterNode(object: unknown): ClusterNode | null {
  const node = readNode(object);
  return node === null ? null : { ...node, inventory: inventoryOf(node.annotations) };
}

/** What is kept of a namespace. */
export interface Namespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

function readNamespace(object: unknown): Namespace | null {
  const { metadata } = object as KubeObject;
  const isGoing = metadata?.deletionTimestamp !== undefined;
  return metadata?.name === undefined || isGoing ? null : { name: metadata.name, labels: metadata.labels ?? {} };
}

/** Served first without being named. */
const SYSTEM_NAMESPACE = 'kube-system';

/** Everything that the arbitrator looks at, as it is followed at the API server. */
export class ClusterView {
  readonly consumers: KnownObjects<ConsumerObject>;
  readonly allocations: KnownObjects<AllocationObject>;
  readonly #nodes: Informer<ClusterNode>;
  readonly #pods: Informer<ClusterPod>;
  readonly #namespaces: Informer<Namespace>;
  readonly #budgets: Informer<DisruptionBudget>;
  readonly #quotas: Informer<NamespaceQuota>;
  #isNew = true;

  constructor(api: WatchableApi, policy: ServedPolicy) {
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
  }

  start(): void {
    for (const followed of this.#all()) {
      followed.onChange(() => (this.#isNew = true));
      followed.start();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all().map((followed) => followed.stop()));
  }

  /** True once all of it was listed: half of a cluster would look like one with too few nodes, or without budgets. */
  get synced(): boolean {
    return this.#all().every(({ synced }) => synced);
  }

  /** Whether anything changed since this was asked last. */
  takeNews(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }

  pods(): ReadonlyMap<string, ClusterPod> {
    return new Map(this.#pods.values().map((pod) => [pod.uid, pod]));
  }

  /**
   * The cluster at this moment. A node that no pod can come to counts as large as what its pods hold, and these stay:
   * nobody would get what they let go. Pods of nodes that are gone hold nothing.
   */
  situation(now: number, markOf: (uid: string) => PodMark): Situation {
    const nodes = new Map(this.#nodes.values().map((node) => [node.name, node]));
    const capacity = new Map<string, number>();
    for (const { takesPods, allocatable } of nodes.values()) if (takesPods) addTo(capacity, allocatable);
    const budgets = new Map<string, DisruptionBudget[]>();
    for (const budget of this.#budgets.values())
      budgets.set(budget.namespace, [...(budgets.get(budget.namespace) ?? []), budget]);
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
      const guards = (budgets.get(consumer) ?? []).filter((budget) => budget.guards(pod.labels)).map(({ key }) => key);
      pods.push({
        id: uid,
        consumer,
        node: pod.node,
        place: JSON.stringify(pod.gpus.indexes),
        uses,
        priority,
        startedAt,
        isLeaving,
        budgets: guards,
        // The eviction API refuses pods with more than one budget.
        isProtected: pod.isBoundToStay || !node.takesPods || guards.length > 1 || unreadable.has(consumer),
        isSpared: mark.isProtected,
      });
    }
    return {
      now,
      capacity,
      consumers: this.#specs(),
      pods: pods.map((pod) => ({ ...pod, uses: only(pod.uses, has) })),
      pending: new Map([...pending].map(([name, asked]) => [name, only(asked, has)])),
      disruptions: new Map(this.#budgets.values().map(({ key, allowed }) => [key, allowed])),
      nodes: this.#arbitratedNodes(),
      waiting,
    };
  }

  /** Those that pods can come to; where the agent shows the GPUs, pods fit only as it would place them. */
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

  /** What is wrong with each Consumer, as far as the cluster is concerned. */
  problems(capacity: Quantities): ReadonlyMap<string, readonly ConsumerProblem[]> {
    const all = this.consumers.values();
    const reserved = new Map<string, number>();
    for (const { spec } of all) addTo(reserved, spec.reserved ?? new Map<string, number>());
    const quotas = new Map<string, Map<string, number>>();
    for (const { namespace, hard } of this.#quotas.values()) {
      const least = quotas.get(namespace) ?? new Map<string, number>();
      quotas.set(namespace, least);
      for (const [resource, amount] of hard) least.set(resource, Math.min(amount, least.get(resource) ?? Infinity));
    }
    return new Map(
      all.map(({ name, spec }) => {
        // All others as one: only their sum counts, and a thousand sums of a thousand would take a second.
        const others = new Map(
          [...reserved].map(([resource, amount]) => [resource, amount - (spec.reserved?.get(resource) ?? 0)]),
        );
        return [
          name,
          consumerProblems(spec, { capacity, others: [{ name: '', reserved: others }], quotaHard: quotas.get(name) }),
        ];
      }),
    );
  }

  /** Namespaces without a Consumer. */
  withoutConsumer(): readonly Namespace[] {
    return this.#namespaces.values().filter(({ name }) => this.consumers.get(name) === null);
  }

  /** Every namespace is a consumer, and so is the Consumer of a namespace that does not exist yet. */
  #specs(): readonly ConsumerSpec[] {
    const specs = new Map<string, ConsumerSpec>(this.#namespaces.values().map(({ name }) => [name, { name }]));
    for (const { name, spec } of this.consumers.values()) specs.set(name, spec);
    const system = specs.get(SYSTEM_NAMESPACE);
    if (system !== undefined) specs.set(SYSTEM_NAMESPACE, { ...system, isSystem: system.isSystem ?? true });
    return [...specs.values()];
  }

  #all(): readonly Pick<Informer<unknown>, 'start' | 'stop' | 'synced' | 'onChange'>[] {
    return [
      this.consumers.followed,
      this.allocations.followed,
      this.#nodes,
      this.#pods,
      this.#namespaces,
      this.#budgets,
      this.#quotas,
    ];
  }
}

/** For each pod the nodes that its selectors, affinity and tolerations let it come to; pods alike share the set. */
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

/** What the cluster has of it: nobody can get the rest, and nobody has too much of it. */
function only(amounts: Quantities, has: (resource: string) => boolean): Quantities {
  return [...amounts.keys()].every(has) ? amounts : new Map([...amounts].filter(([resource]) => has(resource)));
}
