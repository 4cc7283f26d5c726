import type { BindPolicy, GpuSelection } from '../gpu-selection.js';
import { linksBetween } from '../topology/topology.js';
import { searchLargeSet } from './large-set.js';
import type { Machine } from './machine.js';
import { pcieScore } from './score.js';
import { MAX_TABLE_GPUS } from './set-table.js';
import { isWhole, type GpuSlot } from './slot.js';

/** Equal parts of this many GPUs. */
interface PartsRequest {
  readonly count: number;
  readonly selection?: GpuSelection;
}

interface Candidate {
  readonly set: readonly number[];
  /** What decides, the most important first; larger is better. */
  readonly merits: readonly number[];
}

/**
 * Chooses the GPUs of equal parts: the set with the most NVLinks, then the nearest by PCIe and NUMA, then the set that
 * takes the fewest unused GPUs, then the one with the fewest free cores and the least free memory (with `spread`: the
 * most), then the one with the fewest processes, then the lowest positions. `groups`: alternatives, each of positions
 * with room; `must` is in all of them. Exact for groups of up to 16 GPUs; of larger ones a well connected set. Null
 * without a group.
 */
export function chooseParts(
  machine: Machine,
  slots: readonly GpuSlot[],
  { count, selection }: PartsRequest,
  groups: readonly (readonly number[])[],
  must: readonly number[],
): readonly number[] | null {
  const policy = selection?.gpuPolicy ?? 'binpack';
  let best: Candidate | null = null;
  for (const group of groups)
    for (const set of setsOf(machine, slots, { count, group, must })) {
      const candidate = { set, merits: meritsOf(machine, slots, set, policy) };
      if (best === null || isBetter(candidate, best)) best = candidate;
    }
  return best?.set ?? null;
}

interface Sets {
  readonly count: number;
  readonly group: readonly number[];
  readonly must: readonly number[];
}

/** The sets of a group to compare, those of the lowest positions first. */
function* setsOf(machine: Machine, slots: readonly GpuSlot[], sets: Sets): Iterable<readonly number[]> {
  const { count, group, must } = sets;
  if (group.length <= MAX_TABLE_GPUS) {
    const others = group.filter((position) => !must.includes(position));
    for (const rest of subsetsOf(others, count - must.length)) yield [...must, ...rest].sort((a, b) => a - b);
    return;
  }
  const found = searchLargeSet(machine, [
    {
      free: group,
      nodeFree: group,
      must,
      count,
      needMemoryBytes: 0,
      memoryBytes: slots.map((slot) => slot.freeMemoryBytes),
      processCounts: slots.map((slot) => slot.processCount),
    },
  ]);
  if (found !== null) yield found;
}

function* subsetsOf(positions: readonly number[], count: number, from = 0): Iterable<readonly number[]> {
  if (count === 0) yield [];
  else
    for (let at = from; at <= positions.length - count; at++)
      for (const rest of subsetsOf(positions, count - 1, at + 1)) yield [positions[at] as number, ...rest];
}

function meritsOf(
  { topology }: Machine,
  slots: readonly GpuSlot[],
  set: readonly number[],
  policy: BindPolicy,
): readonly number[] {
  let [links, nearness] = [0, 0];
  for (const [at, a] of set.entries())
    for (const b of set.slice(at + 1)) {
      links += linksBetween(topology, a, b);
      nearness += pcieScore(topology, a, b);
    }
  const chosen = set.map((position) => slots[position] as GpuSlot);
  const sum = (amount: (slot: GpuSlot) => number): number => chosen.reduce((total, slot) => total + amount(slot), 0);
  const room = [sum((slot) => slot.freeCores), sum((slot) => slot.freeMemoryBytes)];
  const packing = policy === 'spread' ? room : [-chosen.filter(isWhole).length, ...room.map((amount) => -amount)];
  return [links, nearness, ...packing, -sum((slot) => slot.processCount)];
}

/** True when `a` is better by the first merit in which they differ. */
function isBetter(a: Candidate, b: Candidate): boolean {
  const at = a.merits.findIndex((merit, place) => merit !== b.merits[place]);
  return at >= 0 && (a.merits[at] as number) > (b.merits[at] as number);
}
