import type { GpuSlot } from '../placement/slot.js';
import { CORES_PER_GPU } from '../resources.js';
import type { Charge, ContainerDemand, GpuSite, PodDemand } from './pod-demand.js';

export interface ContainerGpus {
  /** Index in `spec.containers`; for an init container in `spec.initContainers`. */
  readonly container: number;
  /** `Gpu.index` of each, ascending. */
  readonly indexes: readonly number[];
  /** `Gpu.uuid` of each, in the same order; absent where one is unknown. */
  readonly uuids?: readonly string[];
}

/** One container to be placed, in the order in which the kubelet serves them. */
export interface PlacementStep {
  readonly wanted: ContainerDemand;
  readonly isInit: boolean;
}

/** Capacity that init containers leave to the containers after them, by position. */
export type Left = ReadonlyMap<number, Amount>;

/** Reserved amounts of one GPU. */
export interface Amount {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** A pod with some of its containers placed. */
export interface PlacementStage {
  /** The GPUs without the amounts that the pod has taken so far. */
  readonly slots: readonly GpuSlot[];
  readonly left: Left;
  readonly charges: readonly Charge[];
  readonly init: readonly ContainerGpus[];
  readonly containers: readonly ContainerGpus[];
}

/** The containers of a pod in the order in which the kubelet serves them. */
export function stepsOf({ init, containers }: PodDemand): readonly PlacementStep[] {
  return [
    ...init.map((wanted) => ({ wanted, isInit: true })),
    ...containers.map((wanted) => ({ wanted, isInit: false })),
  ];
}

export function firstStage(slots: readonly GpuSlot[], left: Left = new Map()): PlacementStage {
  return { slots, left, charges: [], init: [], containers: [] };
}

/** The amounts that a container takes of a GPU: a part as requested, or the whole GPU with all its memory. */
export function chargeOf(shape: GpuSite, position: number, wanted: ContainerDemand): Charge {
  const { cores, memoryBytes, suspendable } = wanted;
  const charge =
    cores < CORES_PER_GPU
      ? { position, cores, memoryBytes }
      : { position, cores: CORES_PER_GPU, memoryBytes: shape.gpus[position]?.gpu.memoryBytes ?? 0 };
  return suspendable === true ? { ...charge, suspendable } : charge;
}

/** Number of GPUs that a container gets. */
export function gpusOf({ cores, gpus = 1 }: Pick<ContainerDemand, 'cores' | 'gpus'>): number {
  return cores < CORES_PER_GPU ? gpus : cores / CORES_PER_GPU;
}

/**
 * The GPUs that the next container may get, as numbers of positions. The kubelet reuses ids of the init containers, as
 * many as the container requests, from any of their GPUs.
 */
export function keptFor({ left }: PlacementStage, wanted: ContainerDemand): { must: number[]; among: number[] | null } {
  const kept = [...left.keys()];
  if (kept.length > gpusOf(wanted)) return { must: [], among: kept };
  return { must: kept, among: null };
}

/** The GPUs as the next container finds them: capacity of ended init containers counts as free. */
export function slotsFor({ slots, left }: PlacementStage): readonly GpuSlot[] {
  if (left.size === 0) return slots;
  return slots.map((slot, position) => {
    const own = left.get(position);
    if (own === undefined) return slot;
    return { ...slot, freeCores: slot.freeCores + own.cores, freeMemoryBytes: slot.freeMemoryBytes + own.memoryBytes };
  });
}

/** The stage after a container got these GPUs. */
export function advance(
  shape: GpuSite,
  stage: PlacementStage,
  { wanted, isInit }: PlacementStep,
  positions: readonly number[],
): PlacementStage {
  const taken = positions.map((position) => chargeOf(shape, position, wanted));
  const fresh = taken.map((charge) => beyond(charge, stage.left.get(charge.position)));
  const left = new Map(stage.left);
  for (const charge of taken) {
    if (isInit) left.set(charge.position, larger(charge, left.get(charge.position)));
    else left.delete(charge.position);
  }
  const kind = isInit ? 'init' : 'containers';
  return {
    ...stage,
    slots: without(stage.slots, fresh),
    left,
    charges: [...stage.charges, ...fresh.filter((charge) => charge.cores > 0 || charge.memoryBytes > 0)],
    [kind]: [...stage[kind], containerGpus(shape, wanted.container, positions)],
  };
}

function containerGpus({ gpus }: GpuSite, container: number, positions: readonly number[]): ContainerGpus {
  const own = positions.flatMap((position) => gpus[position]?.gpu ?? []).sort((a, b) => a.index - b.index);
  const indexes = own.map(({ index }) => index);
  const uuids = own.map(({ uuid }) => uuid);
  return { container, indexes, ...(uuids.includes('') ? {} : { uuids }) };
}

export function indexAt(shape: GpuSite, position: number): number {
  return shape.gpus[position]?.gpu.index ?? position;
}

function without(slots: readonly GpuSlot[], charges: readonly Charge[]): readonly GpuSlot[] {
  return slots.map((slot, position) => {
    const charge = charges.find((taken) => taken.position === position);
    if (charge === undefined) return slot;
    return {
      ...slot,
      freeCores: slot.freeCores - charge.cores,
      freeMemoryBytes: Math.max(0, slot.freeMemoryBytes - charge.memoryBytes),
    };
  });
}

function beyond(charge: Charge, own: Amount | undefined): Charge {
  if (own === undefined) return charge;
  return {
    ...charge,
    cores: Math.max(0, charge.cores - own.cores),
    memoryBytes: Math.max(0, charge.memoryBytes - own.memoryBytes),
  };
}

function larger(a: Amount, b: Amount | undefined): Amount {
  return { cores: Math.max(a.cores, b?.cores ?? 0), memoryBytes: Math.max(a.memoryBytes, b?.memoryBytes ?? 0) };
}
