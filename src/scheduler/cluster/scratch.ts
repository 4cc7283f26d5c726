import { emptyState, type ClusterNode, type FreeState } from './node.js';

/** States to try in, one for each number of cards, used again and again. */
export class ScratchStates {
  readonly #states = new Map<number, FreeState>();

  /** A state with room for the node's cards. Its content is whatever was there last. */
  of(node: ClusterNode): FreeState {
    const cards = node.shape.cards.length;
    let state = this.#states.get(cards);
    if (state === undefined) this.#states.set(cards, (state = emptyState(cards)));
    return state;
  }
}
