import { bitsOf, positionsOf, type BitSet } from './bit-set.js';
import { serves, type Choice } from './choice.js';
import { searchLargeSet } from './large-set.js';
import type { Exact, Machine } from './machine.js';
import { originalLink } from './original.js';
import { leavingMost, mostOf, preferredSet } from './preference.js';

/**
 * Chooses several whole GPUs, exactly, on machines of up to 16 GPUs (beyond, a search from many starts): the free set
 * with the most NVLinks. Among those, in this order: the best disjoint NVLink sets remain; the set is nearest by PCIe
 * and NUMA; the best disjoint sets by PCIe remain; the lowest positions. Where only PCIe differs the original's
 * evaluator decides between equally near sets, so that a machine moves over without a surprise. `choices` are
 * alternatives that are judged together. Null where no free set of any has the count and the memory.
 */
export function chooseLink(machine: Machine, choices: readonly Choice[]): readonly number[] | null {
  const { exact } = machine;
  const [any] = choices;
  if (exact === null) return searchLargeSet(machine, choices);
  const linked = mostLinked(exact, choices);
  if (any === undefined || linked.length === 0) return null;
  const free = bitsOf(any.nodeFree);
  if (machine.hasNvlink) return positionsOf(preferredSet(exact, free, linked));
  const near = mostOf(linked, (set) => exact.pcie.table.of(set));
  const nearness = exact.pcie.table.of(near[0] as BitSet);
  for (const choice of choices) {
    const usual = originalLink(machine.tree, choice);
    if (usual !== null && serves(choice, usual) && exact.pcie.table.of(bitsOf(usual)) === nearness) return usual;
  }
  return positionsOf(leavingMost(exact.pcie, free, near)[0] as BitSet);
}

/**
 * The free sets with the most NVLinks that serve, lowest positions first. Of sets that differ in twins only, the lowest
 * stands for all: on a machine where NVSwitch joins every pair that leaves one set of many thousands.
 */
function mostLinked({ nvlink, pcie }: Exact, choices: readonly Choice[]): readonly BitSet[] {
  let ties: BitSet[] = [];
  let best = -1;
  for (const choice of choices) {
    const must = bitsOf(choice.must);
    const candidates = positionsOf(bitsOf(choice.free) & ~must);
    const memory = (at: number) => choice.memoryBytes[at] as number;
    /** Candidates below a position that could always stand in for it. */
    const ahead = candidates.map((position) =>
      bitsOf(
        candidates.filter(
          (other) =>
            other < position &&
            memory(other) >= memory(position) &&
            nvlink.table.areTwins(other, position) &&
            pcie.table.areTwins(other, position),
        ),
      ),
    );
    const judge = (set: BitSet): void => {
      const links = nvlink.table.of(set);
      if (links < best || (choice.needMemoryBytes > 0 && !serves(choice, positionsOf(set)))) return;
      if (links > best) ties = [];
      best = links;
      ties.push(set);
    };
    const choose = (from: number, left: number, set: BitSet): void => {
      if (left === 0) {
        judge(set);
        return;
      }
      for (let at = from; at <= candidates.length - left; at++) {
        if (((ahead[at] as BitSet) & ~set) === 0) choose(at + 1, left - 1, set | (1 << (candidates[at] as number)));
      }
    };
    choose(0, choice.count - choice.must.length, must);
  }
  return ties;
}
