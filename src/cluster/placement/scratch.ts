import { emptyState, type ClusterNode, type FreeState } from './node.js';

/** Reusable states for simulations, one for each number of GPUs. */
export class ScratchStates {
  readonly #states = new Map<number, FreeState>();

  /** A state with room for the node's GPUs. It still has the content of its last use. */
  of(node: ClusterNode): FreeState {
    const gpus = node.shape.gpus.length;
    let state = this.#states.get(gpus);
    if (state === undefined) this.#states.set(gpus, (state = emptyState(gpus)));
    return state;
  }
}
