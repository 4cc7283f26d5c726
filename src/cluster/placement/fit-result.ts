import { COMPUTE_KEY } from '../../gpu/annotations.js';
import { allows, ANY_GPUS, selectionInWords } from '../../gpu/gpu-selection.js';
import type { ContainerDemand } from '../../gpu/pods/pod-demand.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { needsGpu, type Demand } from './demand.js';
import { copyState, type ClusterNode, type FreeState } from './node.js';
import type { ScratchStates } from './scratch.js';
import { canFit, findPart, fitOf, isSelective } from './fit-simulation.js';

/**
 * Why a pod does not fit on a node. `no-room` and `reserved` may change when pods end or are preempted, and `reserved`
 * also as soon as another pod is decided. `not-searched`: the search reached its limits without an answer.
 * `not-selected`: none of the node's GPUs is for the pod, by its annotations. These do not change.
 */
export type MisfitReason =
  'unknown-node' | 'no-gpu' | 'not-selected' | 'too-large' | 'no-room' | 'reserved' | 'not-searched';

/** True if preempting other pods could make room. */
export function isResolvable(refusal: MisfitReason): boolean {
  return refusal === 'no-room' || refusal === 'reserved' || refusal === 'not-searched';
}

/**
 * Whether a pod fits on a node beside the reservations: null when it does. `unfinished`: another call continues the
 * search.
 */
export function judgeFit(
  node: ClusterNode,
  demand: Demand,
  scratch: ScratchStates,
): MisfitReason | 'unfinished' | null {
  if (!needsGpu(demand)) return null;
  if (node.free.cores.length === 0) return 'no-gpu';
  if (isSelective(node, demand) && !node.shape.gpus.some(({ gpu }) => allows(demand.selection, gpu)))
    return 'not-selected';
  const state = scratch.of(node);
  const isAlone = demand.init.length === 0 && demand.containers.length === 1 && !isSelective(node, demand);
  if (isAlone && !node.isReserved && node.freeFor(demand) === node.free) {
    if (fitsAlone(node, demand.containers[0] as ContainerDemand)) return null;
  } else {
    node.copyUnreserved(state, demand);
    const fit = fitOf(node, state, demand);
    if (fit === 'fits') return null;
    if (fit === 'unfinished') return 'unfinished';
    if (fit === 'given-up') return 'not-searched';
  }
  if (node.isReserved) {
    copyState(node.freeFor(demand), state);
    if (fitOf(node, state, demand) === 'fits') return 'reserved';
  }
  return fitsIdle(node, demand, scratch) ? 'no-room' : 'too-large';
}

/** Decides without a fit simulation for one container on a node without reservations. */
function fitsAlone(node: ClusterNode, wanted: ContainerDemand): boolean {
  const { free } = node;
  if (wanted.cores < CORES_PER_GPU) return findPart(free, wanted) >= 0;
  if (node.wholeCount < wanted.cores / CORES_PER_GPU || wanted.cores % CORES_PER_GPU !== 0) return false;
  const { shape } = node;
  if (wanted.memoryBytes === 0) return true;
  const memory = shape.gpus.map((_, at) =>
    (free.cores[at] as number) >= CORES_PER_GPU ? (free.memory[at] as number) : 0,
  );
  return largestSum(memory, wanted.cores / CORES_PER_GPU) >= wanted.memoryBytes;
}

function largestSum(numbers: number[], count: number): number {
  return numbers
    .sort((a, b) => b - a)
    .slice(0, count)
    .reduce((sum, number) => sum + number, 0);
}

/** Whether the pod would fit if the node ran no pods, as far as known. */
function fitsIdle(node: ClusterNode, demand: Demand, scratch: ScratchStates): boolean {
  const [only, another] = demand.containers;
  if (only !== undefined && another === undefined && demand.init.length === 0 && !isSelective(node, demand)) {
    if (only.cores < CORES_PER_GPU) return node.largestGpuBytes >= only.memoryBytes;
    const count = only.cores / CORES_PER_GPU;
    if (node.usableCount < count || !Number.isInteger(count)) return false;
    if (only.memoryBytes === 0) return true;
    if (node.uniform) return count * node.largestGpuBytes >= only.memoryBytes;
  }
  const state = scratch.of(node);
  fillIdle(node, state);
  return canFit(node.shape, state, demand) !== 'does-not-fit';
}

/** Fills `state` as if the node ran no pods. */
function fillIdle(node: ClusterNode, state: FreeState): void {
  for (const [at, gpu] of node.shape.gpus.entries()) {
    state.cores[at] = gpu.usable ? CORES_PER_GPU : 0;
    state.memory[at] = gpu.usable ? gpu.gpu.memoryBytes : 0;
  }
  state.cpuMilli = Infinity;
  state.hostMemoryBytes = Infinity;
}

/**
 * The text of a refusal. Equal for all nodes with the same reason, because the scheduler counts equal texts together.
 */
export function refusalText(refusal: MisfitReason, demand: Demand): string {
  switch (refusal) {
    case 'unknown-node':
      return 'node is not known (yet)';
    case 'no-gpu':
      return 'node has no GPU to share';
    case 'not-selected':
      if (demand.selection === ANY_GPUS)
        return `node shares the multiprocessors of its GPUs, which needs the annotation ${COMPUTE_KEY}: sm`;
      return `node has no GPU that the pod's annotations allow${selectionInWords(demand.selection)}`;
    case 'too-large':
      return `GPUs are too few, too small or unhealthy for ${inWords(demand)}`;
    case 'no-room':
      return `no room for ${inWords(demand)}`;
    case 'reserved':
      return `room for ${inWords(demand)} is reserved for pods that are being placed`;
    case 'not-searched':
      return `no GPUs for ${inWords(demand)} were found within the time limit of one decision`;
  }
}

/** More containers are only counted: the text is sent for every node. */
const MOST_IN_WORDS = 4;

function inWords(demand: Demand): string {
  const all = [...demand.init, ...demand.containers];
  const named = all.slice(0, MOST_IN_WORDS).map(containerInWords);
  const more = all.length > named.length ? [`${all.length - named.length} more containers`] : [];
  return `${[...named, ...more].join(' and ')}${selectionInWords(demand.selection)}`;
}

function containerInWords({ cores, memoryBytes, gpus = 1 }: ContainerDemand): string {
  const blocks = memoryBytes / MEMORY_BLOCK_BYTES;
  const memory = blocks === 0 ? '' : ` with ${blocks} memory blocks`;
  if (cores < CORES_PER_GPU) return `${cores} cores${memory} on ${gpus === 1 ? 'one GPU' : `each of ${gpus} GPUs`}`;
  const count = cores / CORES_PER_GPU;
  return `${count} whole GPU${count === 1 ? '' : 's'}${memory}`;
}
