import { place } from '../../gpu/placement/place.js';
import type { GpuSlot } from '../../gpu/placement/slot.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { ContainerDemand, Demand } from './demand.js';
import type { Charge, NodeShape } from './node.js';

/** The GPUs of one container. */
export interface ContainerGpus {
  /** Index in `spec.containers`. */
  readonly container: number;
  /** `Gpu.index` of each, ascending. */
  readonly indexes: readonly number[];
}

export type PodPlacement =
  | { readonly ok: true; readonly containers: readonly ContainerGpus[]; readonly charges: readonly Charge[] }
  | { readonly ok: false; readonly reason: string };

/** What an init container leaves to those after it, by position. */
type Left = Map<number, { cores: number; memoryBytes: number }>;

/**
 * Chooses the GPUs of all containers of a pod on one node, one container after another as the kubelet does, with the
 * node's own placement: the node agent, asked in the same state, answers the same. `slots` are the node's GPUs in that
 * state.
 *
 * An init container's GPUs stay with the pod: the containers after it have to take them first (the kubelet's
 * `mustInclude`). A refusal says which container found no place, and why.
 */
export function placePod(shape: NodeShape, slots: readonly GpuSlot[], demand: Demand): PodPlacement {
  let state = slots;
  const left: Left = new Map();
  const charges: Charge[] = [];
  const containers: ContainerGpus[] = [];
  for (const [at, wanted] of [...demand.init, ...demand.containers].entries()) {
    const isInit = at < demand.init.length;
    const chosen = placeContainer(shape, withLeft(state, left), wanted, [...left.keys()]);
    if (!chosen.ok)
      return { ok: false, reason: `${isInit ? 'init container' : 'container'} ${wanted.container}: ${chosen.reason}` };
    const taken = chosen.positions.map((position) => chargeOf(shape, position, wanted));
    const fresh = taken.map((charge) => beyond(charge, left.get(charge.position)));
    charges.push(...fresh.filter((charge) => charge.cores > 0 || charge.memoryBytes > 0));
    state = without(state, fresh);
    for (const charge of taken) {
      if (isInit) left.set(charge.position, larger(charge, left.get(charge.position)));
      else left.delete(charge.position);
    }
    if (!isInit)
      containers.push({
        container: wanted.container,
        indexes: chosen.positions.map((position) => indexAt(shape, position)),
      });
  }
  return { ok: true, containers, charges };
}

/** What a container takes of a GPU: a part as asked, or the whole GPU with all its memory. */
export function chargeOf(shape: NodeShape, position: number, wanted: ContainerDemand): Charge {
  if (wanted.cores < CORES_PER_GPU) return { position, cores: wanted.cores, memoryBytes: wanted.memoryBytes };
  return { position, cores: CORES_PER_GPU, memoryBytes: shape.gpus[position]?.gpu.memoryBytes ?? 0 };
}

type Chosen =
  { readonly ok: true; readonly positions: readonly number[] } | { readonly ok: false; readonly reason: string };

function placeContainer(
  shape: NodeShape,
  slots: readonly GpuSlot[],
  wanted: ContainerDemand,
  kept: readonly number[],
): Chosen {
  const whole = wanted.cores >= CORES_PER_GPU;
  const request = { cores: wanted.cores, memoryBytes: whole && !shape.memoryKnown ? 0 : wanted.memoryBytes };
  // The kubelet hands over as many of the kept ids as the container asks for, from whichever of the GPUs.
  const count = whole ? wanted.cores / CORES_PER_GPU : 1;
  const options =
    kept.length === 0
      ? {}
      : kept.length > count
        ? { among: kept.map((position) => indexAt(shape, position)) }
        : { mustInclude: kept.map((position) => indexAt(shape, position)) };
  const placed = place(shape.topology, slots, request, options);
  if (!placed.ok) return { ok: false, reason: placed.reason };
  const positions = placed.gpus.map((gpu) => shape.gpus.findIndex((candidate) => candidate.gpu.index === gpu.index));
  return { ok: true, positions };
}

function indexAt(shape: NodeShape, position: number): number {
  return shape.gpus[position]?.gpu.index ?? position;
}

function withLeft(slots: readonly GpuSlot[], left: Left): readonly GpuSlot[] {
  if (left.size === 0) return slots;
  return slots.map((slot, position) => {
    const own = left.get(position);
    if (own === undefined) return slot;
    return { ...slot, freeCores: slot.freeCores + own.cores, freeMemoryBytes: slot.freeMemoryBytes + own.memoryBytes };
  });
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

type Amount = { cores: number; memoryBytes: number };

function beyond(charge: Charge, own: Amount | undefined): Charge {
  if (own === undefined) return charge;
  return {
    position: charge.position,
    cores: Math.max(0, charge.cores - own.cores),
    memoryBytes: Math.max(0, charge.memoryBytes - own.memoryBytes),
  };
}

function larger(a: Amount, b: Amount | undefined): Amount {
  return { cores: Math.max(a.cores, b?.cores ?? 0), memoryBytes: Math.max(a.memoryBytes, b?.memoryBytes ?? 0) };
}
