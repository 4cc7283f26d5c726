import { allows, ANY_GPUS } from '../../gpu/gpu-selection.js';
import type { ContainerDemand } from '../../gpu/pods/pod-demand.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { assignmentMemo, type LeastRoom } from '../../gpu/pods/assignment-memo.js';
import { searchAssignment } from '../../gpu/pods/assignment-search.js';
import type { Demand } from './demand.js';
import { copyState, emptyState, slotsOf, type ClusterNode, type FreeState, type NodeShape } from './node.js';
import { placeInOrder, placePod } from '../../gpu/pods/pod-placement.js';

/**
 * Simulates placing a pod: subtracts from `state` what the pod would take on the node and returns whether it fits;
 * `state` is valid only if it does. Agrees with `placePod` on whether the pod fits, at a small part of its cost: which
 * of several equal GPUs is taken does not change the free capacity. If GPUs differ so that it could, it calls
 * `placePod`.
 */
export function tryPod(node: ClusterNode, state: FreeState, demand: Demand): boolean {
  const { shape } = node;
  state.cpuMilli -= demand.cpuMilli;
  state.hostMemoryBytes -= demand.hostMemoryBytes;
  if (isPlacedExactly(node, demand)) return tryExactly(shape, state, demand);
  if (demand.containers.length < 2) return demand.containers.every((wanted) => tryContainer(state, wanted));
  const before = emptyState(state.cores.length);
  copyState(state, before);
  if (demand.containers.every((wanted) => tryContainer(state, wanted))) return true;
  // The pod may fit in another order.
  copyState(before, state);
  return tryExactly(shape, state, demand);
}

/**
 * Whether a pod fits: `unfinished` if the search for an assignment may go on with another call, `given-up` if it was
 * given up for good.
 */
export type Fit = 'fits' | 'does-not-fit' | 'unfinished' | 'given-up';

/** The answer of `tryPod` without the remaining state; `state` is meaningless afterwards. */
export function fitOf(node: ClusterNode, state: FreeState, demand: Demand): Fit {
  const { shape } = node;
  if (isPlacedExactly(node, demand)) {
    const fit = canFit(shape, state, demand);
    const isOpen = fit === 'unfinished' || fit === 'given-up';
    return isOpen && placeInOrder(shape, slotsOf(shape, state), demand).ok ? 'fits' : fit;
  }
  if (demand.containers.length < 2) return tryPod(node, state, demand) ? 'fits' : 'does-not-fit';
  const before = emptyState(state.cores.length);
  copyState(state, before);
  if (demand.containers.every((wanted) => tryContainer(state, wanted))) return 'fits';
  return canFit(shape, before, demand);
}

/**
 * Whether all containers can be placed in this state. Does not change the state. A result for one node is reused for
 * other nodes in the same state.
 */
export function canFit(shape: NodeShape, state: FreeState, demand: Demand): Fit {
  const memo = assignmentMemo(demand);
  if (!hasRoom(state, memo.leastRoom)) return 'does-not-fit';
  const key = memo.keyOfFree(shape, state);
  const known = memo.isPlaceable(key);
  if (known !== undefined) return known ? 'fits' : 'does-not-fit';
  if (memo.isGivenUp(key)) return 'given-up';
  const { stage, isProven, isUnfinished } = searchAssignment(shape, slotsOf(shape, state), demand);
  if (isProven) return stage === null ? 'does-not-fit' : 'fits';
  return isUnfinished ? 'unfinished' : 'given-up';
}

/** Whether the choice among several GPUs affects the remaining state. */
function isPlacedExactly(node: ClusterNode, demand: Demand): boolean {
  return demand.init.length > 0 || (demand.containers.length > 1 && !node.uniform) || isSelective(node, demand);
}

/**
 * False where no order of the containers can fit. On most full nodes, this check fails long before all assignments are
 * tried.
 */
function hasRoom({ cores, memory }: FreeState, leastRoom: readonly LeastRoom[]): boolean {
  return leastRoom.every(({ size, count, bytes }) => {
    let missing = count;
    for (let at = 0; at < cores.length && missing > 0; at++) {
      const byCores = Math.floor((cores[at] as number) / size);
      missing -= bytes > 0 ? Math.min(byCores, Math.floor((memory[at] as number) / bytes)) : byCores;
    }
    return missing <= 0;
  });
}

/** True when not every GPU of this node is for the pod, or its annotations change which of them comes first. */
export function isSelective(node: ClusterNode, { selection, containers }: Demand): boolean {
  if (selection === ANY_GPUS) return node.sharesSms;
  const { equalGpus, sameNuma, gpuPolicy } = selection;
  if (containers.some(({ gpus = 1 }) => gpus > 1)) return true;
  if ((equalGpus && !node.alike) || sameNuma || gpuPolicy === 'spread') return true;
  return node.shape.gpus.some(({ gpu }) => !allows(selection, gpu));
}

function tryContainer(state: FreeState, wanted: ContainerDemand): boolean {
  return wanted.cores < CORES_PER_GPU ? tryPart(state, wanted) : tryWhole(state, wanted);
}

function tryExactly(shape: NodeShape, state: FreeState, demand: Demand): boolean {
  if (canFit(shape, state, demand) === 'does-not-fit') return false;
  const placed = placePod(shape, slotsOf(shape, state), demand);
  if (!placed.ok) return false;
  for (const { position, cores, memoryBytes } of placed.charges) {
    state.cores[position] = (state.cores[position] as number) - cores;
    state.memory[position] = Math.max(0, (state.memory[position] as number) - memoryBytes);
  }
  return true;
}

function tryPart(state: FreeState, wanted: ContainerDemand): boolean {
  const chosen = findPart(state, wanted);
  if (chosen < 0) return false;
  state.cores[chosen] = (state.cores[chosen] as number) - wanted.cores;
  state.memory[chosen] = (state.memory[chosen] as number) - wanted.memoryBytes;
  return true;
}

/**
 * The position of the GPU with the fewest free cores, then the least memory, that has room for a part: the choice of
 * the `share` evaluator. -1 if none has room.
 */
export function findPart({ cores: freeCores, memory: freeMemory }: FreeState, wanted: ContainerDemand): number {
  let chosen = -1;
  let chosenCores = Infinity;
  let chosenBlocks = Infinity;
  for (let at = 0; at < freeCores.length; at++) {
    const cores = freeCores[at] as number;
    if (cores < wanted.cores || cores > chosenCores) continue;
    const memory = freeMemory[at] as number;
    if (memory < wanted.memoryBytes) continue;
    const blocks = Math.floor(memory / MEMORY_BLOCK_BYTES);
    if (cores === chosenCores && blocks >= chosenBlocks) continue;
    chosen = at;
    chosenCores = cores;
    chosenBlocks = blocks;
  }
  return chosen;
}

function tryWhole(state: FreeState, wanted: ContainerDemand): boolean {
  const positions = findWhole(state, wanted);
  if (positions === null) return false;
  for (const at of positions) {
    state.cores[at] = 0;
    state.memory[at] = 0;
  }
  return true;
}

/**
 * Positions that could be the whole GPUs of a container; null if there are too few, or their memory does not suffice.
 */
export function findWhole(state: FreeState, wanted: ContainerDemand): number[] | null {
  const count = wanted.cores / CORES_PER_GPU;
  if (!Number.isInteger(count)) return null;
  const whole: number[] = [];
  // An unusable GPU has no free cores here.
  for (let at = 0; at < state.cores.length; at++) if ((state.cores[at] as number) >= CORES_PER_GPU) whole.push(at);
  if (whole.length < count) return null;
  if (wanted.memoryBytes > 0) {
    const memory = (at: number): number => state.memory[at] as number;
    whole.sort((a, b) => memory(b) - memory(a) || a - b);
    let sum = 0;
    for (let at = 0; at < count; at++) sum += memory(whole[at] as number);
    if (sum < wanted.memoryBytes) return null;
  }
  return whole.slice(0, count);
}
