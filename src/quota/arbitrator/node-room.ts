import { of, type Quantities } from '../../manifests/quantities.js';
import { limitedResource } from './limit-resource.js';
import type { RunningPod } from './running-pod.js';
import type { WaitingPod } from './waiting-pod.js';

/** A node that accepts pods. */
export interface ArbitratedNode {
  readonly name: string;
  readonly allocatable: Quantities;
  /** Maximum number of pods. */
  readonly podSlots: number;
  /** Maximum number of steps of the exact search for victims; default 4,000. */
  readonly searchSteps?: number | undefined;
  /**
   * Whether a pod fits beside others where sums are not enough, as with GPUs: parts that are free on several GPUs are
   * not a whole free GPU. Called only for pods that fit by the sums. Default: always.
   */
  readonly fits?:
    ((pod: WaitingPod, staying: readonly RunningPod[], held: readonly WaitingPod[]) => boolean) | undefined;
}

/** Free capacity of a node, without the pods that stay and the nominated pods. */
export class NodeRoom {
  readonly node: ArbitratedNode;
  readonly #staying = new Set<RunningPod>();
  readonly #nominated = new Set<WaitingPod>();
  readonly #free: Map<string, number>;

  constructor(node: ArbitratedNode) {
    this.node = node;
    this.#free = new Map(node.allocatable);
  }

  /** Whether the node has a resource to run out of: a node does not count the limits of its pods. */
  counts(resource: string): boolean {
    return limitedResource(resource) === null || this.node.allocatable.has(resource);
  }

  /** Pods that use the node and are not leaving. */
  get staying(): ReadonlySet<RunningPod> {
    return this.#staying;
  }

  add(pod: RunningPod): void {
    this.#staying.add(pod);
    this.#take(pod.uses, 1);
  }

  remove(pod: RunningPod): void {
    if (this.#staying.delete(pod)) this.#take(pod.uses, -1);
  }

  reserve(pod: WaitingPod): void {
    this.#nominated.add(pod);
    this.#take(pod.uses, 1);
  }

  /** Whether the node is eligible for a pod. */
  admits({ nodes, uses }: WaitingPod): boolean {
    if (nodes !== null && !nodes.has(this.node.name)) return false;
    for (const [resource, amount] of uses)
      if (this.counts(resource) && amount > of(this.node.allocatable, resource)) return false;
    return true;
  }

  /** Resources whose free amount is less than the pod needs. */
  shortOf({ uses }: WaitingPod): readonly string[] {
    return [...uses].flatMap(([resource, amount]) =>
      this.counts(resource) && amount > of(this.#free, resource) ? [resource] : [],
    );
  }

  /** Whether a pod fits after all terminating pods and the pods of `without` have ended. */
  fits(pod: WaitingPod, without: ReadonlySet<RunningPod>): boolean {
    if (this.#staying.size + this.#nominated.size - without.size + 1 > this.node.podSlots) return false;
    for (const [resource, amount] of pod.uses) {
      if (!this.counts(resource)) continue;
      let free = of(this.#free, resource);
      for (const { uses } of without) free += of(uses, resource);
      if (amount > free) return false;
    }
    const { fits } = this.node;
    if (fits === undefined) return true;
    return fits(
      pod,
      [...this.#staying].filter((other) => !without.has(other)),
      [...this.#nominated],
    );
  }

  #take(uses: Quantities, times: 1 | -1): void {
    for (const [resource, amount] of uses) this.#free.set(resource, of(this.#free, resource) - times * amount);
  }
}
