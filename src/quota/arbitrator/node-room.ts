import { of, type Quantities } from './quantities.js';
import type { RunningPod } from './running-pod.js';
import type { WaitingPod } from './waiting-pod.js';

/** A node that pods can come to. */
export interface ArbitratedNode {
  readonly name: string;
  /** What it has for pods. */
  readonly allocatable: Quantities;
  /** How many pods it can hold. */
  readonly podSlots: number;
  /**
   * Whether a pod fits beside others, where sums alone do not say: GPUs that are shared by several pods are no whole
   * ones. Asked only about pods for which the sums are enough. Always without.
   */
  readonly fits?:
    ((pod: WaitingPod, staying: readonly RunningPod[], held: readonly WaitingPod[]) => boolean) | undefined;
}

/** The room of one node: what is left beside the pods that stay and those that room is kept for. */
export class NodeRoom {
  readonly node: ArbitratedNode;
  readonly #staying = new Set<RunningPod>();
  readonly #held = new Set<WaitingPod>();
  readonly #free: Map<string, number>;

  constructor(node: ArbitratedNode) {
    this.node = node;
    this.#free = new Map(node.allocatable);
  }

  /** Pods that hold something here and are not leaving. */
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

  hold(pod: WaitingPod): void {
    this.#held.add(pod);
    this.#take(pod.uses, 1);
  }

  /** Whether a pod may come here at all. */
  admits({ nodes, uses }: WaitingPod): boolean {
    if (nodes !== null && !nodes.has(this.node.name)) return false;
    for (const [resource, amount] of uses) if (amount > of(this.node.allocatable, resource)) return false;
    return true;
  }

  /** Resources of which a pod needs more than is left. */
  shortOf({ uses }: WaitingPod): readonly string[] {
    return [...uses].flatMap(([resource, amount]) => (amount > of(this.#free, resource) ? [resource] : []));
  }

  /** Whether a pod fits when all that is leaving has left, and `without` as well. */
  fits(pod: WaitingPod, without: ReadonlySet<RunningPod>): boolean {
    if (this.#staying.size + this.#held.size - without.size + 1 > this.node.podSlots) return false;
    for (const [resource, amount] of pod.uses) {
      let free = of(this.#free, resource);
      for (const { uses } of without) free += of(uses, resource);
      if (amount > free) return false;
    }
    const { fits } = this.node;
    if (fits === undefined) return true;
    return fits(
      pod,
      [...this.#staying].filter((other) => !without.has(other)),
      [...this.#held],
    );
  }

  #take(uses: Quantities, times: 1 | -1): void {
    for (const [resource, amount] of uses) this.#free.set(resource, of(this.#free, resource) - times * amount);
  }
}
