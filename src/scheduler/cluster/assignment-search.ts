import { isWhole, type GpuSlot } from '../../gpu/placement/slot.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { ContainerDemand, Demand } from './demand.js';
import type { NodeShape } from './node.js';
import { assignmentMemo, type AssignmentMemo } from './assignment-memo.js';
import {
  advance,
  firstStage,
  gpusOf,
  keptFor,
  slotsFor,
  type PlacementStage,
  type PlacementStep,
} from './placement-stage.js';

/** Pods with more GPU containers than this are not searched. */
const MAX_CONTAINERS = 16;

/** The search is given up after this many stages, which is some milliseconds. Usual pods need a few. */
const MAX_STAGES = 5_000;

export interface FoundAssignment {
  /** All containers placed; null if no assignment was found. */
  readonly stage: PlacementStage | null;
  /** False if the search was given up. */
  readonly isProven: boolean;
}

/**
 * Searches an assignment of all containers of a pod to GPUs, in the kubelet's order: exact for up to 16 containers.
 * GPUs in the same state are interchangeable, and a state from which the rest did not fit is not tried again, on
 * whichever node. The fullest GPU with room is tried first.
 */
export function searchAssignment(shape: NodeShape, slots: readonly GpuSlot[], demand: Demand): FoundAssignment {
  const memo = assignmentMemo(demand, shape);
  const { steps } = memo;
  if (steps.length > MAX_CONTAINERS) return { stage: null, isProven: false };
  let stages = 0;
  let givenUp = false;
  const search = (stage: PlacementStage, at: number): PlacementStage | null => {
    const step = steps[at];
    if (step === undefined) return stage;
    const key = memo.keyOf(stage, at);
    if (memo.isPlaceable(key) === false) return null;
    if (++stages > MAX_STAGES) {
      givenUp = true;
      return null;
    }
    for (const positions of choicesFor(shape, stage, step, demand.equalGpus, memo, at)) {
      const found = search(advance(shape, stage, step, positions), at + 1);
      if (found !== null) memo.learn(key, true);
      if (found !== null || givenUp) return found;
    }
    memo.learn(key, false);
    return null;
  };
  /** The assignment of another node is valid for every state with the same key. */
  const follow = (stage: PlacementStage, at: number): PlacementStage | null => {
    const step = steps[at];
    if (step === undefined) return stage;
    if (memo.isPlaceable(memo.keyOf(stage, at)) !== true) return null;
    for (const positions of choicesFor(shape, stage, step, demand.equalGpus, memo, at)) {
      const found = follow(advance(shape, stage, step, positions), at + 1);
      if (found !== null) return found;
    }
    return null;
  };
  const first = firstStage(slots);
  const stage = search(first, 0) ?? (givenUp ? follow(first, 0) : null);
  return { stage, isProven: stage !== null || !givenUp };
}

/** Equal for GPUs with equal free capacity, which are interchangeable. */
function slotKey({ gpu, freeCores, freeMemoryBytes, usable }: GpuSlot): string {
  return usable ? `${freeCores}/${freeMemoryBytes}/${gpu.memoryBytes}/${gpu.model}` : '-';
}

/** The ways to place the next container that lead to different states, the fullest GPUs first. */
function choicesFor(
  shape: NodeShape,
  stage: PlacementStage,
  { wanted }: PlacementStep,
  equalGpus: boolean,
  memo: AssignmentMemo,
  at: number,
): readonly (readonly number[])[] {
  const { must, among } = keptFor(stage, wanted);
  const slots = slotsFor(stage);
  const allowed = (among ?? [...slots.keys()]).filter((position) => {
    const slot = slots[position] as GpuSlot;
    return wanted.cores < CORES_PER_GPU
      ? slot.usable && slot.freeCores >= wanted.cores && slot.freeMemoryBytes >= wanted.memoryBytes
      : isWhole(slot);
  });
  if (!must.every((position) => allowed.includes(position))) return [];
  const groups = alike(
    stage,
    slots,
    allowed.filter((position) => !must.includes(position)),
  );
  const needBytes = wanted.cores >= CORES_PER_GPU && shape.memoryKnown ? wanted.memoryBytes : 0;
  return setsOf(groups, gpusOf(wanted) - must.length)
    .map((set) => [...must, ...set].sort((a, b) => a - b))
    .filter((set) => servesWhole(slots, set, wanted, needBytes, equalGpus))
    .filter(unlike((position) => memo.kindOf(stage.slots[position] as GpuSlot, stage.left.get(position), at)));
}

/** True for the first of several sets that the containers cannot distinguish. */
function unlike(kindOf: (position: number) => number): (set: readonly number[]) => boolean {
  const seen = new Set<string>();
  return (set) => {
    const kinds = set
      .map(kindOf)
      .sort((a, b) => a - b)
      .join();
    return seen.size < seen.add(kinds).size;
  };
}

/** Positions grouped by GPU kind and room, those with the least room first. */
function alike(
  { left }: PlacementStage,
  slots: readonly GpuSlot[],
  positions: readonly number[],
): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const position of positions) {
    const key = `${slotKey(slots[position] as GpuSlot)}/${left.has(position)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [position]);
    else group.push(position);
  }
  const first = (group: readonly number[]) => slots[group[0] as number] as GpuSlot;
  return [...groups.values()].sort(
    (a, b) =>
      first(a).freeCores - first(b).freeCores ||
      first(a).freeMemoryBytes - first(b).freeMemoryBytes ||
      (a[0] as number) - (b[0] as number),
  );
}

/** All ways to take `count` positions; from each group the first ones are taken. */
function setsOf(groups: readonly (readonly number[])[], count: number): readonly (readonly number[])[] {
  if (count === 0) return [[]];
  const [group, ...others] = groups;
  if (group === undefined || count < 0) return [];
  const sets: (readonly number[])[] = [];
  for (let taken = Math.min(count, group.length); taken >= 0; taken--)
    for (const rest of setsOf(others, count - taken)) sets.push([...group.slice(0, taken), ...rest]);
  return sets;
}

function servesWhole(
  slots: readonly GpuSlot[],
  set: readonly number[],
  wanted: ContainerDemand,
  needBytes: number,
  equalGpus: boolean,
): boolean {
  if (wanted.cores < CORES_PER_GPU) return true;
  const chosen = set.map((position) => slots[position] as GpuSlot);
  if (equalGpus && new Set(chosen.map(({ gpu }) => `${gpu.memoryBytes}/${gpu.model}`)).size > 1) return false;
  return chosen.reduce((sum, { freeMemoryBytes }) => sum + freeMemoryBytes, 0) >= needBytes;
}
