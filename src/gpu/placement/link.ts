import { bitsOf, positionsOf, type BitSet } from './bit-set.js';
import { serves, type Choice } from './choice.js';
import { searchLargeSet } from './large-set.js';
import type { Exact, Machine } from './machine.js';
import { originalLink } from './original.js';
import type { SetTable } from './set-table.js';
import { compareFutureValue } from './future-value.js';

/**
 * Chooses `choice.count` whole GPUs: the free set with the highest score, exactly, on machines of up to 16 GPUs
 * (beyond, a local search). Between sets of equal score: where only PCIe differs, the one that the original's evaluator
 * takes, so that a machine moves over without a surprise; else the one that leaves the best sets for later; then the
 * one that is nearer by PCIe; then the lowest positions. Null where no free set has the count and the memory.
 */
export function chooseLink(machine: Machine, choice: Choice): readonly number[] | null {
  const { exact } = machine;
  if (exact === null) return searchLargeSet(machine, choice);
  const ties = bestSets(exact.table, choice);
  const first = ties[0];
  if (first === undefined) return null;
  if (!machine.hasNvlink) {
    const usual = originalLink(machine.tree, choice);
    if (usual !== null && serves(choice, usual) && exact.table.score(bitsOf(usual)) === exact.table.score(first))
      return usual;
  }
  return positionsOf(leavesMost(exact, bitsOf(choice.nodeFree), first, ties));
}

/** Among sets with equal score, the one after which the rest has the highest future value; `first` is one of them. */
export function leavesMost(
  { table, futureValue }: Exact,
  free: BitSet,
  first: BitSet,
  sets: readonly BitSet[],
): BitSet {
  if (sets.length === 1) return first;
  let chosen = first;
  let most = futureValue.of(free & ~first);
  for (const set of sets) {
    const left = futureValue.of(free & ~set);
    const better = compareFutureValue(left, most) || table.value(set) - table.value(chosen);
    if (better > 0) [chosen, most] = [set, left];
  }
  return chosen;
}

/**
 * The free sets of the highest score that serve, lowest positions first. Of sets that differ in twins only, the lowest
 * stands for all: on a machine where NVSwitch joins every pair that leaves one set of many thousands.
 */
function bestSets(table: SetTable, choice: Choice): readonly BitSet[] {
  const must = bitsOf(choice.must);
  const candidates = positionsOf(bitsOf(choice.free) & ~must);
  const ahead = candidates.map((position) => twinsAhead(table, choice, candidates, position));
  let ties: BitSet[] = [];
  let best = -1;
  const judge = (set: BitSet): void => {
    const score = table.score(set);
    if (score < best || !serves(choice, positionsOf(set))) return;
    if (score > best) ties = [];
    best = score;
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
  return ties;
}

/** Candidates below `position` that could always stand in for it, having the same connections and no less memory. */
function twinsAhead(table: SetTable, choice: Choice, candidates: readonly number[], position: number): BitSet {
  const memory = (at: number) => choice.memoryBytes[at] as number;
  return bitsOf(
    candidates.filter(
      (other) => other < position && memory(other) >= memory(position) && table.areTwins(other, position),
    ),
  );
}
