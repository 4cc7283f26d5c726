import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterObserver, ClusterSource } from '../../src/cluster/cluster-source.js';
import { readPod } from '../../src/kube/pod.js';
import { nodeOf, type NodeObject, type PodObject } from './objects.js';
import { PodViews } from '../../src/cluster/pod-view.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import type { DisruptionBudget } from '../../src/kube/disruption-budget.js';
import type { EvictionLimitSource } from '../../src/cluster/eviction-limits.js';
import type { GroupMinimum } from '../../src/cluster/pod-groups.js';
import type { WorkResult } from '../../src/kube/work-queue.js';
import type { PodName, PodWriter } from '../../src/scheduler/pod-writer.js';

/** An API server in memory: pods and nodes, a watch with a delay, bindings and patches that can fail. */
export class FakeApi implements ClusterSource, EvictionLimitSource, PodWriter {
  readonly pods = new Map<string, PodObject>();
  readonly nodes = new Map<string, NodeObject>();
  /** Bindings and patches that arrived, in order. */
  readonly writes: {
    verb: 'bind' | 'annotate';
    pod: string;
    node: string | null;
    annotations: Readonly<Record<string, string>>;
  }[] = [];
  /** Whether the watches of pods and nodes are open and silent: their events are lost. */
  readonly silent = { pods: false, nodes: false };
  watchLagMs = 0;
  writeLagMs = 0;
  /** Answers to the next writes, which are then not carried out. */
  readonly failures: KubeAnswer[] = [];
  readonly #views = new PodViews();
  readonly #observers = new Set<ClusterObserver>();

  readonly silentMs = 0;
  /** Null while the disruption budgets are not known. */
  budgets: readonly DisruptionBudget[] | null = [];
  minimums: readonly GroupMinimum[] = [];
  /** False to hold back the lists. */
  answersLists = true;

  disruptionBudgets(): readonly DisruptionBudget[] | null {
    return this.budgets;
  }

  groupMinimums(): readonly GroupMinimum[] {
    return this.minimums;
  }

  start(observer: ClusterObserver): void {
    this.#observers.add(observer);
    if (this.answersLists) this.#list(observer);
  }

  /** Releases the lists. */
  list(): void {
    for (const observer of this.#observers) this.#list(observer);
  }

  #list(observer: ClusterObserver): void {
    for (const node of this.nodes.values()) observer.nodeSeen(nodeOf(node));
    for (const pod of this.pods.values()) observer.podSeen(this.#views.view(readPod(pod)));
    observer.synced();
  }

  async stop(): Promise<void> {
    this.#observers.clear();
  }

  setNode(node: NodeObject): void {
    this.nodes.set(node.metadata?.name ?? '', node);
    if (!this.silent.nodes) this.#later((observer) => observer.nodeSeen(nodeOf(node)));
  }

  deleteNode(name: string): void {
    this.nodes.delete(name);
    if (!this.silent.nodes) this.#later((observer) => observer.nodeGone(name));
  }

  setPod(pod: PodObject): void {
    this.pods.set(pod.metadata?.uid ?? '', pod);
    if (!this.silent.pods) this.#later((observer) => observer.podSeen(this.#views.view(readPod(pod))));
  }

  deletePod(name: string): void {
    const uid = `uid-${name}`;
    this.pods.delete(uid);
    if (!this.silent.pods) this.#later((observer) => observer.podGone(uid));
  }

  /** The current pod. */
  pod(name: string): PodObject {
    const pod = this.pods.get(`uid-${name}`);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    return pod;
  }

  async bind(
    pod: PodName,
    node: string,
    annotations: Readonly<Record<string, string>>,
    _mayStillSend: () => boolean = () => true,
  ): Promise<KubeAnswer> {
    this.writes.push({ verb: 'bind', pod: pod.name, node, annotations });
    return this.#write(pod, (found) => {
      if (found.spec?.nodeName !== undefined)
        return failure('conflict', `pod ${pod.name} is already assigned to node "${found.spec.nodeName}"`);
      this.setPod({
        ...found,
        metadata: { ...found.metadata, annotations: { ...found.metadata?.annotations, ...annotations } },
        spec: { ...found.spec, nodeName: node },
      });
      return { ok: true, body: null };
    });
  }

  async read(pod: PodName): ReturnType<PodWriter['read']> {
    const found = this.pods.get(pod.uid);
    return { ok: true, pod: found === undefined ? null : readPod(found) };
  }

  async refreshPods(): Promise<void> {
    for (const pod of this.pods.values())
      for (const observer of this.#observers) observer.podSeen(this.#views.view(readPod(pod)));
  }

  async annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WorkResult> {
    this.writes.push({ verb: 'annotate', pod: pod.name, node: null, annotations });
    const answer = await this.#write(pod, (found) => {
      this.setPod({
        ...found,
        metadata: { ...found.metadata, annotations: { ...found.metadata?.annotations, ...annotations } },
      });
      return { ok: true, body: null };
    });
    if (answer.ok) return 'done';
    return answer.code === 'not-found' ? 'gone' : answer;
  }

  async #write(pod: PodName, write: (found: PodObject) => KubeAnswer): Promise<KubeAnswer> {
    if (this.writeLagMs > 0) await sleep(this.writeLagMs);
    const given = this.failures.shift();
    if (given !== undefined) return given;
    const found = this.pods.get(pod.uid);
    if (found === undefined) return failure('not-found', `pods "${pod.name}" not found`);
    return write(found);
  }

  #later(tell: (observer: ClusterObserver) => void): void {
    const say = (): void => this.#observers.forEach(tell);
    if (this.watchLagMs === 0) say();
    else setTimeout(say, this.watchLagMs);
  }
}
