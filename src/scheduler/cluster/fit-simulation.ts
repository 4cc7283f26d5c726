import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { assignmentMemo } from './assignment-memo.js';
import { searchAssignment } from './assignment-search.js';
import type { ContainerDemand, Demand } from './demand.js';
import { copyState, emptyState, slotsOf, type ClusterNode, type FreeState, type NodeShape } from './node.js';
import { placePod } from './pod-placement.js';

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
  if (demand.containers.length < 2) return demand.containers.every((wanted) => tryContainer(shape, state, wanted));
  const before = emptyState(state.cores.length);
  copyState(state, before);
  if (demand.containers.every((wanted) => tryContainer(shape, state, wanted))) return true;
  // The pod may fit in another order.
  copyState(before, state);
  return tryExactly(shape, state, demand);
}

/** The answer of `tryPod` without the remaining state; `state` is meaningless afterwards. */
export function fits(node: ClusterNode, state: FreeState, demand: Demand): boolean {
  if (!isPlacedExactly(node, demand)) return tryPod(node, state, demand);
  return canFit(node.shape, state, demand) ?? placePod(node.shape, slotsOf(node.shape, state), demand).ok;
}

/**
 * Whether all containers can be placed in this state; null where the search for an assignment was given up. Does not
 * change the state. A result for one node is reused for other nodes in the same state.
 */
export function canFit(shape: NodeShape, state: FreeState, demand: Demand): boolean | null {
  if (!haveRoom(state, demand.containers)) return false;
  const memo = assignmentMemo(demand, shape);
  const known = memo.isPlaceable(memo.keyOfFree(shape, state));
  if (known !== undefined) return known;
  const { stage, isProven } = searchAssignment(shape, slotsOf(shape, state), demand);
  return isProven ? stage !== null : null;
}

/** Whether the choice among several GPUs affects the remaining state. */
function isPlacedExactly(node: ClusterNode, demand: Demand): boolean {
  return demand.init.length > 0 || (demand.containers.length > 1 && !node.uniform) || needsEqual(node, demand);
}

/**
 * False where no order can fit: for every container there have to be GPUs for as many containers of its cores or more,
 * each with the least memory that one of these requests. On most full nodes, this check fails long before all
 * assignments are tried.
 */
function haveRoom({ cores, memory }: FreeState, containers: readonly ContainerDemand[]): boolean {
  return containers.every(({ cores: wanted }) => {
    const size = Math.min(wanted, CORES_PER_GPU);
    let needed = 0;
    let leastBytes = Infinity;
    for (const other of containers) {
      if (other.cores < size) continue;
      const isWhole = other.cores >= CORES_PER_GPU;
      needed += isWhole ? Math.floor(CORES_PER_GPU / size) * (other.cores / CORES_PER_GPU) : 1;
      leastBytes = Math.min(leastBytes, isWhole ? 0 : other.memoryBytes);
    }
    for (let at = 0; at < cores.length && needed > 0; at++) {
      const byCores = Math.floor((cores[at] as number) / size);
      needed -= leastBytes > 0 ? Math.min(byCores, Math.floor((memory[at] as number) / leastBytes)) : byCores;
    }
    return needed <= 0;
  });
}

/** True when the requirement of equal GPUs restricts the choice on this node. */
export function needsEqual(node: ClusterNode, demand: Demand): boolean {
  return demand.equalGpus && !node.alike;
}

function tryContainer(shape: NodeShape, state: FreeState, wanted: ContainerDemand): boolean {
  return wanted.cores < CORES_PER_GPU ? tryPart(state, wanted) : tryWhole(shape, state, wanted);
}

function tryExactly(shape: NodeShape, state: FreeState, demand: Demand): boolean {
  if (canFit(shape, state, demand) === false) return false;
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

function tryWhole(shape: NodeShape, state: FreeState, wanted: ContainerDemand): boolean {
  const positions = findWhole(shape, state, wanted);
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
export function findWhole(shape: NodeShape, state: FreeState, wanted: ContainerDemand): number[] | null {
  const count = wanted.cores / CORES_PER_GPU;
  if (!Number.isInteger(count)) return null;
  const whole: number[] = [];
  // An unusable GPU has no free cores here.
  for (let at = 0; at < state.cores.length; at++) if ((state.cores[at] as number) >= CORES_PER_GPU) whole.push(at);
  if (whole.length < count) return null;
  if (wanted.memoryBytes > 0 && shape.memoryKnown) {
    const memory = (at: number): number => state.memory[at] as number;
    whole.sort((a, b) => memory(b) - memory(a) || a - b);
    let sum = 0;
    for (let at = 0; at < count; at++) sum += memory(whole[at] as number);
    if (sum < wanted.memoryBytes) return null;
  }
  return whole.slice(0, count);
}
