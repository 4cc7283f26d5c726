import { amountOf, minus, maxOf, type Amount } from '../../../manifests/amount.js';
import { uncertainOf, type Chain, type Group } from '../state/group.js';
import type { QuotaState } from '../state/state.js';

/**
 * Lending and borrowing along the tree, as in Kueue's cohorts. The pool of a group is its quota without its children's
 * quotas, plus what elastic children lend. An elastic group keeps `pool - lendLimit` for itself and lends the rest to
 * its parent's pool. Usage beyond the kept part is taken from the parent's pool ("spills"), up to the lent amount plus
 * `borrowLimit`. A group in mode `carved` lends and spills nothing, so that every walk ends at it.
 */

/**
 * How much more of the key at `slot` the first group of a chain could use; negative if it is over. O(length of the
 * chain).
 */
export function roomOf(state: QuotaState, chain: Chain, slot: number): Amount {
  let room = roomByLimits(state, chain, slot);
  for (let at: Chain | null = chain; at !== null; at = at.above)
    if (at.first.limitReservation !== null)
      room = minus(room, amountOf(uncertainOf(at.first, chain.first.layout.keys[slot] as string)));
  return room;
}

function roomByLimits(state: QuotaState, chain: Chain, slot: number): Amount {
  const fast = chain.fastRoom(slot);
  if (fast === fast) {
    state.counters.keysTested += chain.length;
    return fast;
  }
  const { groups } = chain;
  const slots = slotsAlong(chain, slot);
  const top = (slots?.length ?? groups.length) - 1;
  state.counters.keysTested += top + 1;
  const at = (level: number): number => (slots === null ? slot : (slots[level] as number));
  let room = (groups[top] as Group).amounts.room(at(top));
  for (let level = top - 1; level >= 0; level--) room = (groups[level] as Group).amounts.roomBelow(at(level), room);
  return room;
}

/** Adds usage to the first group of a chain and, where it spills, to its ancestors. The groups must be owned. */
export function charge(state: QuotaState, chain: Chain, slot: number, delta: Amount): void {
  state.counters.keysCharged++;
  let spill = chain.charge(slot, delta);
  let [at, below] = [chain, slot];
  while (at.above !== null && spill !== 0) {
    if (!chain.isUniform) below = aboveSlot(at.first, at.above.first, below);
    if (below < 0) return;
    at = at.above;
    state.counters.keysCharged++;
    spill = at.chargeSpilled(below, spill);
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
  state.structure++;
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
  if (chain.isUniform) return null;
  const slots = [slot];
  let below = slot;
  for (let at = chain; at.above !== null; at = at.above) {
    below = aboveSlot(at.first, at.above.first, below);
    if (below < 0) break;
    slots.push(below);
  }
  return slots;
}

/** The slot of the same key in the parent; -1 if the parent does not limit it, where the chain ends for this key. */
function aboveSlot({ layout }: Group, parent: Group, slot: number): number {
  return parent.layout === layout ? slot : (parent.layout.slots.get(layout.keys[slot] as string) ?? -1);
}

/** By how much the pool to which the group's subtree lends is overdrawn for `key`; zero or negative if it is not. */
export function overdraft(state: QuotaState, group: Group, key: string): Amount {
  const chain = state.chainOf(group).groups.filter(({ layout }) => layout.slots.has(key));
  const top = chain.at(-1) ?? group;
  const slot = top.layout.slots.get(key) as number;
  return minus(0, top.amounts.room(slot));
}
