import { allows, kindOf, type GpuSelection } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import type { GpuSlot } from '../placement/slot.js';
import { isInstance } from '../mig.js';
import { CORES_PER_GPU } from '../resources.js';
import type { ContainerDemand, GpuSite, PodDemand } from './pod-demand.js';
import { stepsOf, type Amount, type PlacementStage, type PlacementStep } from './placement-stage.js';

/**
 * The most memory sums that the memo distinguishes. If the containers' requests have more sums, the memo compares exact
 * amounts of free memory (up to the sum of all requests).
 */
const MOST_SUMS = 1_024;

/** A memo with more states, or more kinds of GPU, is replaced by an empty one. */
const MOST_STATES = 10_000;
const MOST_KINDS = 100_000;

/** GPU requests whose memos are kept; the oldest is dropped first. Together they have some 100 MiB at most. */
const MOST_MEMOS = 32;

/** Maximum number of search steps for one state, over all calls and all nodes. */
const MOST_STEPS_OF_STATE = 5_000;

/** A GPU that none of the remaining containers can use. */
const USELESS = -1;

/** A number of GPUs, counted in parts of one size, that a pod needs in whatever order its containers are placed. */
export interface LeastRoom {
  /** Cores of a GPU, 100 for whole GPUs. */
  readonly size: number;
  readonly count: number;
  /** Memory that each part needs at least. */
  readonly bytes: number;
}

/** Free capacity by position. */
interface FreeAmounts {
  readonly cores: Float64Array;
  readonly memory: Float64Array;
}

/** The requests of the containers from one step on. */
interface Rest {
  /** By number of free cores: the most cores that a subset of these containers can use together. */
  readonly cores: Uint8Array;
  /**
   * The memory sums of all subsets of the containers that request a part of a GPU, ascending; null if there are too
   * many.
   */
  readonly sums: readonly number[] | null;
  /** Free memory beyond this amount makes no difference. */
  readonly mostBytes: number;
  readonly anyWhole: boolean;
  readonly wholeNeedsBytes: boolean;
  readonly anyInit: boolean;
}

/**
 * Caches, for one demand and by GPU states, whether the containers from a step on can be placed. A result for one node
 * is valid for every node with the same GPUs in the same state. GPUs are in the same state if the containers cannot
 * distinguish them: for containers of 30 and 40 cores, 35 free cores are equal to 30.
 *
 * This is only a cache: without it, `searchAssignment` would find the same results again.
 */
export class AssignmentMemo {
  readonly leastRoom: readonly LeastRoom[];
  readonly #steps: readonly PlacementStep[];
  readonly #selection: GpuSelection;
  readonly #rests = new Map<number, Rest>();
  /** Kinds of GPU, numbered in order of appearance. */
  readonly #kinds = new Map<number | string, number>();
  readonly #placeable = new Map<string, boolean>();
  /** By key of a state: the steps of all searches that began there and found nothing yet. */
  readonly #effort = new Map<string, number>();

  constructor(demand: PodDemand) {
    this.#steps = stepsOf(demand);
    this.leastRoom = leastRoomOf(demand.containers);
    this.#selection = demand.selection;
  }

  /** Whether it has so many states that an empty memo must replace it. */
  get isFull(): boolean {
    return this.#placeable.size + this.#effort.size > MOST_STATES || this.#kinds.size > MOST_KINDS;
  }

  /** Whether the containers from the key's step on can be placed in the key's state; undefined if unknown. */
  isPlaceable(key: string): boolean | undefined {
    return this.#placeable.get(key);
  }

  learn(key: string, isPlaceable: boolean): void {
    this.#placeable.set(key, isPlaceable);
  }

  /** Counts the steps of a search that began in this state and ended without an answer. */
  spend(key: string, steps: number): void {
    this.#effort.set(key, (this.#effort.get(key) ?? 0) + steps);
  }

  /** Whether this state was searched for so long that it is not searched again. */
  isGivenUp(key: string): boolean {
    return (this.#effort.get(key) ?? 0) >= MOST_STEPS_OF_STATE;
  }

  /** The key of a state. States that the containers from step `at` on cannot distinguish have equal keys. */
  keyOf({ slots, left }: PlacementStage, at: number): string {
    const kinds = slots.map((slot, position) => this.kindOf(slot, left.get(position), at));
    return keyOfKinds(kinds, at);
  }

  /** The key of a node's state before any container of the pod is placed. */
  keyOfFree({ gpus }: GpuSite, { cores, memory }: FreeAmounts): string {
    const kinds: number[] = [];
    for (let at = 0; at < gpus.length; at++) {
      const free = cores[at] as number;
      if (free > 0) kinds.push(this.#kindOfFree(free, memory[at] as number, (gpus[at] as { gpu: Gpu }).gpu, 0));
    }
    return keyOfKinds(kinds, 0);
  }

  /** The kind of a GPU. GPUs that the containers from step `at` on cannot distinguish have equal kinds. */
  kindOf({ gpu, freeCores, freeMemoryBytes, usable }: GpuSlot, left: Amount | undefined, at: number): number {
    if (!usable || !allows(this.#selection, gpu)) return USELESS;
    if (left === undefined) return this.#kindOfFree(freeCores, freeMemoryBytes, gpu, at);
    const own = `${left.cores}/${left.memoryBytes}`;
    return this.#number(
      `${freeCores}/${freeMemoryBytes}/${gpu.memoryBytes}/${gpu.model}+${own}${this.#setKindOf(gpu)}`,
    );
  }

  #kindOfFree(freeCores: number, freeBytes: number, gpu: Gpu, at: number): number {
    if (!allows(this.#selection, gpu)) return USELESS;
    const rest = this.#rest(at);
    const cores = rest.cores[Math.min(freeCores, CORES_PER_GPU)] as number;
    if (cores === 0) return USELESS;
    if (this.#selection.gpus > 1)
      return this.#number(`${cores}/${freeBytes}/${gpu.memoryBytes}/${gpu.model}${this.#setKindOf(gpu)}`);
    if (cores < CORES_PER_GPU || !rest.anyWhole) return this.#kindOfPart(rest, cores, freeBytes);
    if (rest.anyInit) return this.#number(`${freeBytes}/${gpu.memoryBytes}/${gpu.model}${this.#setKindOf(gpu)}`);
    const kind = this.#setKindOf(gpu);
    if (!rest.wholeNeedsBytes && kind === '') return this.#kindOfPart(rest, cores, freeBytes);
    return this.#number(`${Math.min(freeBytes, rest.mostBytes)}${kind}`);
  }

  /** GPUs of different kinds cannot be in one set. */
  #setKindOf(gpu: Gpu): string {
    const { equalGpus, sameNuma, gpus } = this.#selection;
    if (gpus > 1) return `/${isInstance(gpu)}${kindOf(this.#selection, gpu)}`;
    return equalGpus || sameNuma ? `/${kindOf(this.#selection, gpu)}` : '';
  }

  #kindOfPart({ sums, mostBytes }: Rest, cores: number, freeBytes: number): number {
    if (sums === null) return this.#number(`${cores}/${Math.min(freeBytes, mostBytes)}`);
    let at = sums.length - 1;
    while (at > 0 && (sums[at] as number) > freeBytes) at--;
    return this.#number(cores * MOST_SUMS + at);
  }

  #number(kind: number | string): number {
    let number = this.#kinds.get(kind);
    if (number === undefined) this.#kinds.set(kind, (number = this.#kinds.size + 1));
    return number;
  }

  #rest(at: number): Rest {
    let rest = this.#rests.get(at);
    if (rest === undefined) this.#rests.set(at, (rest = restOf(this.#steps.slice(at))));
    return rest;
  }
}

/** By GPU request. */
const memos = new Map<string, AssignmentMemo>();

/** The memo for the GPU request of a demand. */
export function assignmentMemo(demand: PodDemand): AssignmentMemo {
  if (demand.gpuKey === undefined) return new AssignmentMemo(demand);
  const known = memos.get(demand.gpuKey);
  if (known !== undefined && !known.isFull) return known;
  if (known === undefined && memos.size >= MOST_MEMOS) memos.delete(memos.keys().next().value as string);
  const memo = new AssignmentMemo(demand);
  memos.set(demand.gpuKey, memo);
  return memo;
}

/**
 * For every size among the requests: GPUs for as many containers of this size or more, each with the least memory that
 * one of these requests.
 */
function leastRoomOf(containers: readonly ContainerDemand[]): readonly LeastRoom[] {
  const sizes = new Set(containers.map(({ cores }) => Math.min(cores, CORES_PER_GPU)));
  return [...sizes].map((size) => {
    let count = 0;
    let bytes = Infinity;
    for (const { cores, memoryBytes, gpus = 1 } of containers) {
      if (cores < size) continue;
      const isWhole = cores >= CORES_PER_GPU;
      count += isWhole ? Math.floor(CORES_PER_GPU / size) * (cores / CORES_PER_GPU) : gpus;
      bytes = Math.min(bytes, isWhole ? 0 : memoryBytes);
    }
    return { size, count, bytes };
  });
}

function keyOfKinds(kinds: readonly number[], at: number): string {
  const useful = kinds.filter((kind) => kind !== USELESS).sort((a, b) => a - b);
  return `${at}:${useful.join()}`;
}

function restOf(steps: readonly PlacementStep[]): Rest {
  const parts = steps.filter(({ wanted }) => wanted.cores < CORES_PER_GPU).map(({ wanted }) => wanted);
  const whole = steps.filter(({ wanted }) => wanted.cores >= CORES_PER_GPU).map(({ wanted }) => wanted);
  const needs = whole.map(({ memoryBytes }) => memoryBytes);
  const partBytes = parts.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  return {
    cores: mostCores([...parts.map(({ cores }) => cores), ...whole.map(() => CORES_PER_GPU)]),
    sums: sumsOf(parts.map(({ memoryBytes }) => memoryBytes)),
    mostBytes: Math.max(partBytes, ...needs),
    anyWhole: whole.length > 0,
    wholeNeedsBytes: needs.some((bytes) => bytes > 0),
    anyInit: steps.some(({ isInit }) => isInit),
  };
}

function mostCores(sizes: readonly number[]): Uint8Array {
  const isSum = new Uint8Array(CORES_PER_GPU + 1);
  isSum[0] = 1;
  for (const size of sizes)
    for (let sum = CORES_PER_GPU; sum >= size; sum--) if (isSum[sum - size] === 1) isSum[sum] = 1;
  let most = 0;
  return isSum.map((is, sum) => (most = is === 1 ? sum : most));
}

function sumsOf(amounts: readonly number[]): readonly number[] | null {
  const sums = new Set([0]);
  for (const amount of amounts) {
    for (const sum of [...sums]) sums.add(sum + amount);
    if (sums.size > MOST_SUMS) return null;
  }
  return [...sums].sort((a, b) => a - b);
}
