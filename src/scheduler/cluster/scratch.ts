import { emptyState, type ClusterNode, type FreeState } from './node.js';

/** States to try in, one for each number of GPUs, used again and again. */
export class ScratchStates {
  readonly #states = new Map<number, FreeState>();

  /** A state with room for the node's GPUs. Its content is whatever was there last. */
  of(node: ClusterNode): FreeState {
    const gpus = node.shape.gpus.length;
    let state = this.#states.get(gpus);
    if (state === undefined) this.#states.set(gpus, (state = emptyState(gpus)));
    return state;
  }
}
