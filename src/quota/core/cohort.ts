import { minus, maxOf, type Amount } from './amount.js';
import type { Group } from './group.js';
import type { QuotaState } from './state.js';

/**
 * Lending and borrowing along the tree, as in Kueue's cohorts. The pool of a group is its quota without its children's
 * quotas, plus what elastic children lend. An elastic group keeps `pool - lendLimit` for itself and lends the rest to
 * its parent's pool. Usage beyond the kept part is taken from the parent's pool ("spills"), up to the lent amount plus
 * `borrowLimit`. A group in mode `carved` lends and spills nothing, so that every walk ends at it.
 */

/** A group and the ancestors whose pools it can use; only the group itself unless it is elastic. */
export type Chain = readonly Group[];

/** The chain of a group, for reading. */
export function chainOf(state: QuotaState, group: Group): Chain {
  if (group.mode === 'carved') return [group];
  const path = state.pathOf(group);
  let length = 1;
  while (length < path.length && (path[length - 1] as Group).mode === 'elastic') length++;
  return length === path.length ? path : path.slice(0, length);
}

/**
 * How much more of the key at `slot` the first group of a chain could use; negative if it is over. O(length of the
 * chain).
 */
export function roomOf(state: QuotaState, chain: Chain, slot: number): Amount {
  const fast = fastRoomOf(chain, slot);
  if (fast === fast) {
    state.counters.keysTested += chain.length;
    return fast;
  }
  const slots = slotsAlong(chain, slot);
  const top = (slots?.length ?? chain.length) - 1;
  state.counters.keysTested += top + 1;
  const at = (level: number): number => (slots === null ? slot : (slots[level] as number));
  let room = (chain[top] as Group).amounts.room(at(top));
  for (let level = top - 1; level >= 0; level--) room = (chain[level] as Group).amounts.roomBelow(at(level), room);
  return room;
}

/** The room in plain numbers, if they are exact and all groups of the chain have the same keys; otherwise NaN. */
function fastRoomOf(chain: Chain, slot: number): number {
  const top = chain.length - 1;
  const highest = chain[top] as Group;
  const { layout } = highest;
  let room = highest.amounts.fastRoom(slot);
  for (let level = top - 1; level >= 0; level--) {
    const group = chain[level] as Group;
    if (group.layout !== layout) return NaN;
    room = group.amounts.fastRoomBelow(slot, room);
  }
  return room;
}

/** Adds usage to the first group of a chain and, where it spills, to its ancestors. The groups must be owned. */
export function charge(state: QuotaState, chain: Chain, slot: number, delta: Amount): void {
  state.counters.keysCharged++;
  const change = (chain[0] as Group).amounts.charge(slot, delta);
  let spill = chain.length === 1 ? 0 : change;
  let below = slot;
  for (let at = 1; at < chain.length && spill !== 0; at++) {
    below = aboveSlot(chain, at - 1, below);
    if (below < 0) return;
    state.counters.keysCharged++;
    spill = (chain[at] as Group).amounts.chargeSpilled(below, spill);
  }
}

/** The amounts that a group lends to its parent's pool and uses of it, for one key. */
export interface Flow {
  readonly lends: Amount;
  readonly spills: Amount;
}

const NO_FLOW: Flow = { lends: 0, spills: 0 };

/**
 * Changes limits, mode, sums or keys of a group and updates the pools above it. Keys that the parent limits must stay.
 */
export function restructure(state: QuotaState, group: Group, change: () => void): void {
  const before = new Map(group.layout.keys.map((key, slot) => [key, flowOf(group, slot)]));
  change();
  group.layout.keys.forEach((key, slot) => {
    group.amounts.derive(slot, group.mode === 'elastic');
    passOn(state, group, slot, before.get(key) ?? NO_FLOW);
  });
}

function passOn(state: QuotaState, group: Group, slot: number, old: Flow): void {
  const flow = flowOf(group, slot);
  if (flow.lends === old.lends && flow.spills === old.spills) return;
  const found = group.parent === '' ? undefined : state.group(group.parent);
  const above = found?.layout.slots.get(group.layout.keys[slot] as string);
  if (found === undefined || above === undefined) return;
  const parent = state.own(found);
  const before = flowOf(parent, above);
  parent.amounts.addLent(above, minus(flow.lends, old.lends));
  parent.amounts.addSpilled(above, minus(flow.spills, old.spills));
  parent.amounts.derive(above, parent.mode === 'elastic');
  passOn(state, parent, above, before);
}

/** The flow of a group; zero unless the group is elastic. */
export function flowOf(group: Group, slot: number): Flow {
  if (group.mode === 'carved') return NO_FLOW;
  const { amounts } = group;
  const kept = amounts.localQuota(slot);
  return {
    lends: minus(maxOf(0, amounts.subtreeQuota(slot)), kept),
    spills: maxOf(0, minus(amounts.subtreeUsage(slot), kept)),
  };
}

/** The slots of a key along the chain as far as groups limit it; null if it is `slot` in all of them. */
function slotsAlong(chain: Chain, slot: number): readonly number[] | null {
  const { layout } = chain[0] as Group;
  let alike = 1;
  while (alike < chain.length && (chain[alike] as Group).layout === layout) alike++;
  if (alike === chain.length) return null;
  const slots = [slot];
  for (let above = aboveSlot(chain, 0, slot); above >= 0; above = aboveSlot(chain, slots.length - 1, above))
    slots.push(above);
  return slots;
}

/** The slot of the same key in the next group of the chain; -1 where the chain ends for this key. */
function aboveSlot(chain: Chain, at: number, slot: number): number {
  const parent = chain[at + 1];
  if (parent === undefined) return -1;
  const { layout } = chain[at] as Group;
  return parent.layout === layout ? slot : (parent.layout.slots.get(layout.keys[slot] as string) ?? -1);
}

/** By how much the pool to which the group's subtree lends is overdrawn for `key`; zero or negative if it is not. */
export function overdraft(state: QuotaState, group: Group, key: string): Amount {
  const chain = chainOf(state, group).filter(({ layout }) => layout.slots.has(key));
  const top = chain.at(-1) ?? group;
  const slot = top.layout.slots.get(key) as number;
  return minus(0, top.amounts.room(slot));
}
