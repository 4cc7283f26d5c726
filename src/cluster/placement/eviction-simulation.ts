import type { Charge } from '../../gpu/pods/pod-demand.js';
import type { Demand } from './demand.js';
import { tryPod } from './fit-simulation.js';
import { addCharges, emptyState, type ClusterNode, type FreeState } from './node.js';

/** The capacity that the eviction of a pod frees on its node. */
export interface Freed {
  readonly charges: readonly Charge[];
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
}

/**
 * Simulates whether a pod fits on a node if some of its pods are evicted. Evictions are added and removed one by one,
 * so that the next set of them costs no more than the difference. Amounts are whole numbers, so that sums stay exact.
 */
export class EvictionSimulation {
  readonly #node: ClusterNode;
  readonly #demand: Demand;
  readonly #freed: FreeState;
  readonly #simulated: FreeState;
  /** The evicted pods, where only their charges one by one tell what becomes free; else null. */
  readonly #evicted: Set<Freed> | null;

  constructor(node: ClusterNode, demand: Demand, evicted: readonly Freed[] = []) {
    this.#node = node;
    this.#demand = demand;
    this.#freed = emptyState(node.shape.gpus.length);
    this.#simulated = emptyState(node.shape.gpus.length);
    this.#evicted = (node.shape.suspendFactor ?? 1) > 1 ? new Set() : null;
    for (const pod of evicted) this.add(pod);
  }

  add(pod: Freed): void {
    this.#change(pod, 1);
  }

  remove(pod: Freed): void {
    this.#change(pod, -1);
  }

  /** Whether the pod gets its GPUs. */
  hasGpus(): boolean {
    if (this.#evicted !== null) {
      const charges = [...this.#evicted].flatMap((pod) => pod.charges);
      return tryPod(this.#node, this.#node.without(charges, this.#demand), this.#demand);
    }
    this.#node.copyFreeWith(this.#freed, this.#simulated);
    return tryPod(this.#node, this.#simulated, this.#demand);
  }

  /** Whether the pod gets its CPU and memory of the host. */
  hasHost(): boolean {
    const { free } = this.#node;
    return (
      free.cpuMilli + this.#freed.cpuMilli >= this.#demand.cpuMilli &&
      free.hostMemoryBytes + this.#freed.hostMemoryBytes >= this.#demand.hostMemoryBytes
    );
  }

  #change(pod: Freed, sign: 1 | -1): void {
    const { charges, cpuMilli, hostMemoryBytes } = pod;
    if (sign > 0) this.#evicted?.add(pod);
    else this.#evicted?.delete(pod);
    const freed = this.#freed;
    addCharges(freed, charges, sign);
    freed.cpuMilli += sign * cpuMilli;
    freed.hostMemoryBytes += sign * hostMemoryBytes;
  }
}
