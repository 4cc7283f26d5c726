import { bitsOf, positionsOf, type BitSet } from './bit-set.js';
import { serves, type Choice } from './choice.js';
import { searchLargeSet } from './large-set.js';
import type { Exact, Machine } from './machine.js';
import { originalLink } from './original.js';
import { leavingMost, mostOf, preferredSet } from './preference.js';

/**
 * Chooses several whole GPUs: exactly on machines of up to 16 GPUs, else by a search from many starts. The set has the
 * most NVLinks. Of such sets, in this order: the set that leaves the best disjoint NVLink sets; the nearest by PCIe and
 * NUMA; the set that leaves the best disjoint PCIe sets; the lowest positions. On machines without NVLink the
 * original's evaluator decides between equally near sets, so that an upgrade changes no choice. `choices` are
 * alternatives that compete. Null if no free set of any choice has the count and the memory.
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
 * The free sets with the most NVLinks and enough memory, lowest positions first. If sets differ only in interchangeable
 * GPUs, only the lowest set is kept: on a machine where NVSwitch joins every pair, one set remains of many thousands.
 */
function mostLinked({ nvlink, pcie }: Exact, choices: readonly Choice[]): readonly BitSet[] {
  let ties: BitSet[] = [];
  let best = -1;
  for (const choice of choices) {
    const must = bitsOf(choice.must);
    const candidates = positionsOf(bitsOf(choice.free) & ~must);
    const memory = (at: number) => choice.memoryBytes[at] as number;
    /** Candidates below a position that are interchangeable with it. */
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
