import { allows, kindOf, type GpuSelection } from '../gpu-selection.js';
import { hasRoomFor, isWhole, isWholeOffer, type GpuSlot } from '../placement/slot.js';
import { CORES_PER_GPU } from '../resources.js';
import { isInstance } from '../mig.js';
import type { GpuSite, PodDemand } from './pod-demand.js';
import { assignmentMemo, type AssignmentMemo } from './assignment-memo.js';
import {
  advance,
  firstStage,
  gpusOf,
  keptFor,
  slotsFor,
  stepsOf,
  type Left,
  type PlacementStage,
  type PlacementStep,
} from './placement-stage.js';

/** Pods with more GPU containers than this are not searched. */
const MAX_CONTAINERS = 16;

/** The steps of one call of a search, which are some milliseconds. Usual pods need a few. */
const STEPS_AT_ONCE = 300;

export interface FoundAssignment {
  /** All containers placed; null if no assignment was found. */
  readonly stage: PlacementStage | null;
  /** False if the search ended before all assignments were tried. */
  readonly isProven: boolean;
  /** Whether another call would continue the search. */
  readonly isUnfinished: boolean;
}

/**
 * Searches for an assignment of all containers of a pod to GPUs, in the kubelet's order: exact for up to 16 containers.
 * GPUs in the same state are interchangeable, and a state from which the rest did not fit is not tried again, on
 * whichever node. The fullest GPU with room is tried first.
 *
 * A call tries some hundreds of sets of GPUs at most. The next call for an equal state continues where it ended, until
 * the state is given up for good.
 */
export function searchAssignment(
  shape: GpuSite,
  slots: readonly GpuSlot[],
  demand: PodDemand,
  left?: Left,
): FoundAssignment {
  const memo = assignmentMemo(demand);
  const steps = stepsOf(demand);
  if (steps.length > MAX_CONTAINERS) return { stage: null, isProven: false, isUnfinished: false };
  const first = firstStage(slots, left);
  const firstKey = memo.keyOf(first, 0);
  const known = memo.isPlaceable(firstKey);
  if (known === false) return { stage: null, isProven: true, isUnfinished: false };
  let stepsLeft = STEPS_AT_ONCE;
  const { selection } = demand;
  const choices = (stage: PlacementStage, at: number): Iterable<readonly number[]> =>
    choicesFor(stage, steps[at] as PlacementStep, { memo, at, selection, take: () => stepsLeft-- > 0 });
  const search = (stage: PlacementStage, at: number): PlacementStage | null => {
    const step = steps[at];
    if (step === undefined) return stage;
    const key = memo.keyOf(stage, at);
    if (memo.isPlaceable(key) === false) return null;
    for (const positions of choices(stage, at)) {
      const found = search(advance(shape, stage, step, positions), at + 1);
      if (found !== null) memo.learn(key, true);
      if (found !== null) return found;
      if (stepsLeft < 0) return null;
    }
    if (stepsLeft >= 0) memo.learn(key, false);
    return null;
  };
  /** Repeats the assignment that was found for an equal state. */
  const follow = (stage: PlacementStage, at: number): PlacementStage | null => {
    const step = steps[at];
    if (step === undefined) return stage;
    if (memo.isPlaceable(memo.keyOf(stage, at)) !== true) return null;
    for (const positions of choices(stage, at)) {
      const found = follow(advance(shape, stage, step, positions), at + 1);
      if (found !== null) return found;
    }
    return null;
  };
  const followed = known === true ? follow(first, 0) : null;
  if (followed !== null) return { stage: followed, isProven: true, isUnfinished: false };
  if (memo.isGivenUp(firstKey)) return { stage: null, isProven: false, isUnfinished: false };
  stepsLeft = STEPS_AT_ONCE;
  const stage = search(first, 0);
  if (stage !== null || stepsLeft >= 0) return { stage, isProven: true, isUnfinished: false };
  memo.spend(firstKey, STEPS_AT_ONCE);
  return { stage: null, isProven: false, isUnfinished: !memo.isGivenUp(firstKey) };
}

interface Choosing {
  readonly memo: AssignmentMemo;
  readonly at: number;
  readonly selection: GpuSelection;
  /** Counts one set that is tried; false if no more may be tried. */
  readonly take: () => boolean;
}

/** The ways to place the next container that the containers can distinguish, the fullest GPUs first. */
function* choicesFor(
  stage: PlacementStage,
  { wanted }: PlacementStep,
  { memo, at, selection, take }: Choosing,
): Iterable<readonly number[]> {
  const { must, among } = keptFor(stage, wanted);
  const slots = slotsFor(stage);
  const allowed = (among ?? [...slots.keys()]).filter((position) => {
    const slot = slots[position] as GpuSlot;
    if (!allows(selection, slot.gpu)) return false;
    if (wanted.cores >= CORES_PER_GPU) return wanted.suspendable === true ? isWholeOffer(slot) : isWhole(slot);
    return hasRoomFor(slot, wanted) && (gpusOf(wanted) === 1 || !isInstance(slot.gpu));
  });
  if (!must.every((position) => allowed.includes(position))) return;
  const kindAt = (position: number): number =>
    memo.kindOf(stage.slots[position] as GpuSlot, stage.left.get(position), at);
  const groups = alike(
    slots,
    allowed.filter((position) => !must.includes(position)),
    kindAt,
  );
  const needBytes = wanted.cores >= CORES_PER_GPU ? wanted.memoryBytes : 0;
  for (const set of setsOf(groups, gpusOf(wanted) - must.length)) {
    if (!take()) return;
    const positions = [...must, ...set].sort((a, b) => a - b);
    if (serves(slots, positions, needBytes, selection)) yield positions;
  }
}

/** Positions grouped by kind of GPU, those with the least room first. */
function alike(
  slots: readonly GpuSlot[],
  positions: readonly number[],
  kindOf: (position: number) => number,
): readonly (readonly number[])[] {
  const fullestFirst = [...positions].sort((a, b) => compareRoom(slots[a] as GpuSlot, slots[b] as GpuSlot) || a - b);
  const groups = new Map<number, number[]>();
  for (const position of fullestFirst) {
    const kind = kindOf(position);
    const group = groups.get(kind);
    if (group === undefined) groups.set(kind, [position]);
    else group.push(position);
  }
  return [...groups.values()];
}

function compareRoom(a: GpuSlot, b: GpuSlot): number {
  return a.freeCores - b.freeCores || a.freeMemoryBytes - b.freeMemoryBytes;
}

/** All ways to take `count` positions; from each group the first ones are taken. */
function* setsOf(groups: readonly (readonly number[])[], count: number, from = 0): Iterable<readonly number[]> {
  if (count === 0) {
    yield [];
    return;
  }
  const group = groups[from];
  if (group === undefined || count < 0) return;
  let others = 0;
  for (let at = from + 1; at < groups.length; at++) others += (groups[at] as readonly number[]).length;
  for (let taken = Math.min(count, group.length); taken >= Math.max(0, count - others); taken--)
    for (const rest of setsOf(groups, count - taken, from + 1)) yield [...group.slice(0, taken), ...rest];
}

function serves(
  slots: readonly GpuSlot[],
  set: readonly number[],
  needBytes: number,
  selection: GpuSelection,
): boolean {
  const chosen = set.map((position) => slots[position] as GpuSlot);
  if (new Set(chosen.map(({ gpu }) => kindOf(selection, gpu))).size > 1) return false;
  return chosen.reduce((sum, { freeMemoryBytes }) => sum + freeMemoryBytes, 0) >= needBytes;
}
