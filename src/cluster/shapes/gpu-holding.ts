import { dividedRequest, type DividedRequest } from '../../gpu/division.js';
import { ANY_GPUS, readSelection, selectionFor } from '../../gpu/gpu-selection.js';
import type { NodeInventory } from '../../gpu/node-inventory.js';
import { place } from '../../gpu/placement/place.js';
import type { GpuSlot } from '../../gpu/placement/slot.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_RESOURCE } from '../../gpu/resources.js';
import type { Pod } from '../../kube/pod.js';
import { gpusNamedFor, presentIndexes, type NamedGpus } from '../../kube/pod-gpus.js';

/** A container's request for GPUs that the node agent divides. */
export type GpuRequest = DividedRequest;

/** The GPU requests of a pod, and the GPUs that it has. */
export interface GpuHolding {
  readonly requests: readonly GpuRequest[];
  /** The GPUs, one list per request; null while they are unknown. */
  readonly gpus: readonly Omit<NamedGpus, 'container'>[] | null;
}

/** Reads the GPU requests of a pod. Its annotations name the GPUs once the agent or the extender has chosen them. */
export function readGpuHolding({ containers, annotations }: Pod): GpuHolding {
  const read = readSelection((key) => annotations[key]);
  const selection = read.ok ? read.selection : ANY_GPUS;
  const asking = containers.flatMap(({ name, extended }, container) => {
    const cores = Number(extended(CORE_RESOURCE));
    const memoryBlocks = Number(extended(MEMORY_RESOURCE));
    const request = dividedRequest({ cores, memoryBlocks }, { ...ANY_GPUS, gpus: selectionFor(selection, name).gpus });
    return cores > 0 ? [{ container, request }] : [];
  });
  const gpus = asking.flatMap(({ container }) => gpusNamedFor((key) => annotations[key], container) ?? []);
  return {
    requests: asking.map(({ request }) => request),
    gpus: gpus.length < asking.length ? null : gpus,
  };
}

/**
 * Whether the GPU requests of a pod fit on a node beside the requests of `others`, as the node agent places them. False
 * if the GPUs of another pod are unknown: it may be on any GPU.
 */
export function fitsOnGpus(inventory: NodeInventory, { requests }: GpuHolding, others: readonly GpuHolding[]): boolean {
  return copiesOnGpus(inventory, requests, others, 1) === 1;
}

/** How many times the requests of a pod fit, one copy after the other, at most `limit`; as `fitsOnGpus`. */
export function copiesOnGpus(
  { gpus, topology }: NodeInventory,
  requests: readonly GpuRequest[],
  others: readonly GpuHolding[],
  limit: number,
): number {
  if (requests.length === 0) return limit;
  if (others.some((other) => other.requests.length > 0 && other.gpus === null)) return 0;
  const slots = gpus.map(({ gpu, healthy, foreign }): GpuSlot => ({
    gpu,
    freeCores: CORES_PER_GPU,
    freeMemoryBytes: gpu.memoryBytes,
    processCount: foreign ? 1 : 0,
    usable: healthy && !foreign,
  }));
  const take = ({ cores, memoryBytes }: GpuRequest, indexes: readonly number[]): void => {
    for (const [at, slot] of slots.entries()) {
      if (!indexes.includes(slot.gpu.index)) continue;
      const isPart = cores < CORES_PER_GPU;
      slots[at] = {
        ...slot,
        freeCores: slot.freeCores - (isPart ? cores : CORES_PER_GPU),
        freeMemoryBytes: slot.freeMemoryBytes - (isPart ? memoryBytes : slot.gpu.memoryBytes),
      };
    }
  };
  const known = slots.map(({ gpu }) => gpu);
  for (const { requests: held, gpus: theirs } of others)
    for (const [at, named] of (theirs ?? []).entries()) take(held[at] as GpuRequest, presentIndexes(named, known));
  const placesAll = (): boolean =>
    requests.every((request) => {
      const placed = place(topology, slots, request);
      if (placed.ok)
        take(
          request,
          placed.gpus.map(({ index }) => index),
        );
      return placed.ok;
    });
  let copies = 0;
  while (copies < limit && placesAll()) copies++;
  return copies;
}
