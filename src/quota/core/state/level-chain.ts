import type { Amount } from '../../../manifests/amount.js';
import {
  addAt,
  isOpen,
  KEPT,
  roomAt,
  roomBelowAt,
  SPILLED,
  USED,
  usageAt,
  type GroupAmounts,
} from './group-amounts.js';
import type { Layout } from '../amounts/layout.js';

/** The data of a group that a chain needs. */
export interface Level {
  readonly layout: Layout;
  readonly amounts: GroupAmounts;
}

/**
 * A group and the ancestors whose pools it can use; only the group itself unless it is elastic. Valid until a group of
 * it gets other limits, another mode or other keys. A chain leads to the chain of the parent and to the numbers of its
 * own group, so that a walk touches little memory.
 */
export class LevelChain<G extends Level> {
  readonly first: G;
  /** The chain of the parent; null at the end. */
  readonly above: LevelChain<G> | null;
  readonly length: number;
  /** The state's count of changes of the kind above when the chain was made. */
  readonly structure: number;
  /** Whether all groups have the same keys, and so the same slots. */
  readonly isUniform: boolean;
  readonly #values: Float64Array;
  readonly #start: number;
  readonly #slots: number;
  /** Whether the group keeps nothing for itself and borrows without a limit, of every key. */
  readonly #isOpen: boolean;

  constructor(first: G, above: LevelChain<G> | null, structure: number) {
    this.first = first;
    this.above = above;
    this.length = above === null ? 1 : above.length + 1;
    this.structure = structure;
    this.isUniform = above === null || (above.isUniform && above.first.layout === first.layout);
    const { values, start } = first.amounts;
    this.#values = values;
    this.#start = start;
    this.#slots = first.layout.keys.length;
    this.#isOpen = isOpen(values, start, this.#slots);
  }

  /** The group first. */
  get groups(): readonly G[] {
    return this.above === null ? [this.first] : [this.first, ...this.above.groups];
  }

  /** How much more of the key at `slot` the first group could use, in plain numbers; NaN if they are not exact. */
  fastRoom(slot: number): number {
    return this.isUniform ? LevelChain.#roomOf(this, slot) : NaN;
  }

  static #roomOf(chain: LevelChain<Level>, slot: number): number {
    let at = chain;
    // An open group that is used has as much room as the pool above.
    while (at.above !== null && at.#isOpen && usageAt(at.#values, at.#start + slot, at.#slots) >= 0) at = at.above;
    if (at.above === null) return roomAt(at.#values, at.#start + slot, at.#slots);
    return roomBelowAt(at.#values, at.#start + slot, at.#slots, LevelChain.#roomOf(at.above, slot));
  }

  /** Adds usage of the first group itself; returns by how much it spills more. */
  charge(slot: number, change: Amount): Amount {
    const spill = typeof change === 'number' ? this.#add(slot, USED, change) : NaN;
    return spill === spill ? spill : this.first.amounts.charge(slot, change);
  }

  /** Adds usage of the first group's pool by children; returns by how much the group spills more. */
  chargeSpilled(slot: number, change: Amount): Amount {
    const spill = typeof change === 'number' ? this.#add(slot, SPILLED, change) : NaN;
    return spill === spill ? spill : this.first.amounts.chargeSpilled(slot, change);
  }

  /** NaN, without a change, if the numbers are not exact. */
  #add(slot: number, column: number, change: number): number {
    const at = this.#start + slot;
    const kept = this.#isOpen ? 0 : (this.#values[at + KEPT * this.#slots] as number);
    return addAt(this.#values, at, this.#slots, column, change, kept);
  }
}
