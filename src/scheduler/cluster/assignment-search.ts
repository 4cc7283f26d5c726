import { isWhole, type GpuSlot } from '../../gpu/placement/slot.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { ContainerDemand, Demand } from './demand.js';
import type { NodeShape } from './node.js';
import {
  advance,
  firstStage,
  gpusOf,
  keptFor,
  slotsFor,
  stepsOf,
  type PlacementStage,
  type PlacementStep,
} from './placement-stage.js';

/** Pods with more GPU containers than this are not searched. */
const MOST_CONTAINERS = 16;

/** The search is given up after this many stages, which is some milliseconds. Usual pods need a few. */
const MOST_STAGES = 5_000;

export interface FoundAssignment {
  /** All containers placed; null if no assignment was found. */
  readonly stage: PlacementStage | null;
  /** False if the search was given up. */
  readonly isProven: boolean;
}

/**
 * Searches an assignment of all containers of a pod to GPUs, in the kubelet's order: exact for up to 16 containers.
 * GPUs in the same state are interchangeable, and a state from which the rest did not fit is not tried again. The
 * fullest GPU with room is tried first.
 */
export function searchAssignment(shape: NodeShape, slots: readonly GpuSlot[], demand: Demand): FoundAssignment {
  const steps = stepsOf(demand);
  if (steps.length > MOST_CONTAINERS) return { stage: null, isProven: false };
  const dead = new Set<string>();
  let stages = 0;
  let givenUp = false;
  const search = (stage: PlacementStage, at: number): PlacementStage | null => {
    const step = steps[at];
    if (step === undefined) return stage;
    if (!hasRoom(stage, steps.slice(at))) return null;
    const key = `${at}|${stateKey(stage)}`;
    if (dead.has(key)) return null;
    if (++stages > MOST_STAGES) {
      givenUp = true;
      return null;
    }
    for (const positions of choicesFor(shape, stage, step, demand.equalGpus)) {
      const found = search(advance(shape, stage, step, positions), at + 1);
      if (found !== null || givenUp) return found;
    }
    dead.add(key);
    return null;
  };
  const stage = search(firstStage(slots), 0);
  return { stage, isProven: stage !== null || !givenUp };
}

/** A necessary condition that is cheap to check: enough cores in sum, and enough whole GPUs. */
function hasRoom(stage: PlacementStage, steps: readonly PlacementStep[]): boolean {
  const slots = slotsFor(stage);
  const main = steps.filter(({ isInit }) => !isInit);
  const cores = main.reduce((sum, { wanted }) => sum + wanted.cores, 0);
  const whole = main.reduce((sum, { wanted }) => sum + (wanted.cores < CORES_PER_GPU ? 0 : gpusOf(wanted)), 0);
  const free = slots.reduce((sum, slot) => sum + (slot.usable ? slot.freeCores : 0), 0);
  return cores <= free && whole <= slots.filter(isWhole).length;
}

/** Equal for GPUs that are interchangeable as far as room is concerned. */
function slotKey({ gpu, freeCores, freeMemoryBytes, usable }: GpuSlot): string {
  return usable ? `${freeCores}/${freeMemoryBytes}/${gpu.memoryBytes}/${gpu.model}` : '-';
}

/** Equal for stages that differ only in which of several interchangeable GPUs are taken. */
function stateKey({ slots, left }: PlacementStage): string {
  return slots
    .map((slot, position) => {
      const own = left.get(position);
      return own === undefined ? slotKey(slot) : `${slotKey(slot)}+${own.cores}/${own.memoryBytes}`;
    })
    .sort()
    .join();
}

/** The ways to place the next container that lead to different states, the fullest GPUs first. */
function choicesFor(
  shape: NodeShape,
  stage: PlacementStage,
  { wanted }: PlacementStep,
  equalGpus: boolean,
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
    .filter((set) => servesWhole(slots, set, wanted, needBytes, equalGpus));
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
