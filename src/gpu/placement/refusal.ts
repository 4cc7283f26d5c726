import { ANY_GPUS, kindOf, selectionInWords } from '../gpu-selection.js';
import { isInstance } from '../mig.js';
import { CORES_PER_GPU } from '../resources.js';
import type { PlacementRequest, Scope } from './request.js';
import { hasRoomFor, isWhole, type GpuSlot } from './slot.js';

const MIB = 1024 * 1024;

/** Why no GPU has room for a part: the request, and the capacity of the best GPU. */
export function explainShare(slots: readonly GpuSlot[], request: PlacementRequest, scope: Scope): string {
  const asked = `asked for ${request.cores} cores and ${inMib(request.memoryBytes)} on one GPU`;
  const open = considered(slots, scope).filter((slot) => slot.usable);
  const best = [...open].sort((a, b) => reach(b, request) - reach(a, request) || a.gpu.index - b.gpu.index)[0];
  const had =
    best === undefined
      ? 'none may be chosen'
      : `the best, GPU ${best.gpu.index}, has ${best.freeCores} cores and ${inMib(best.freeMemoryBytes)} free`;
  return `${asked}; ${had}${restrictions(slots, scope, request)}`;
}

/** Why there are not enough GPUs for equal parts: the part of each, and the GPUs with room for it. */
export function explainParts(slots: readonly GpuSlot[], request: PlacementRequest, scope: Scope): string {
  const { cores, memoryBytes, gpus = 1, selection = ANY_GPUS } = request;
  const roomy = considered(slots, scope).filter((slot) => !isInstance(slot.gpu) && hasRoomFor(slot, request));
  const kinds = new Set(roomy.map(({ gpu }) => kindOf(selection, gpu)));
  const list = roomy.map(({ gpu }) => gpu.index).join(', ');
  const had = `${roomy.length} of ${slots.length} ${roomy.length === 1 ? 'has' : 'have'} room${list === '' ? '' : ` (${list})`}`;
  const differ = roomy.length >= gpus && kinds.size > 1 ? ', but not of one kind' : '';
  const divided = slots.some(({ gpu }) => isInstance(gpu)) ? '; MIG instances serve one GPU each' : '';
  return `asked for ${cores} cores and ${inMib(memoryBytes)} on each of ${gpus} GPUs; ${had}${differ}${divided}${restrictions(slots, scope, request)}`;
}

/** Why there are not enough whole GPUs: the request, and the free GPUs. */
export function explainWhole(slots: readonly GpuSlot[], request: PlacementRequest, scope: Scope): string {
  const count = request.cores / CORES_PER_GPU;
  const memory = request.memoryBytes > 0 ? ` with ${inMib(request.memoryBytes)} together` : '';
  const { equalGpus, sameNuma } = request.selection ?? ANY_GPUS;
  const equal = equalGpus && count > 1 ? ' of one model and memory' : '';
  const near = sameNuma && count > 1 ? ' near one NUMA node' : '';
  const whole = considered(slots, scope).filter((slot) => isWhole(slot) && (count === 1 || !isInstance(slot.gpu)));
  const model = ({ gpu }: GpuSlot) =>
    `${equal === '' ? '' : ` ${gpu.model}`}${near === '' ? '' : ` near NUMA node ${gpu.numaNode ?? 'unknown'}`}`;
  const list = whole.map((slot) => `${slot.gpu.index}${model(slot)} with ${inMib(slot.freeMemoryBytes)}`).join(', ');
  const had = `${whole.length} of ${slots.length} ${whole.length === 1 ? 'is' : 'are'} free${list === '' ? '' : ` (${list})`}`;
  const divided = count > 1 && slots.some((slot) => isInstance(slot.gpu)) ? '; MIG instances serve one GPU each' : '';
  return `asked for ${count} whole GPU${count === 1 ? '' : 's'}${equal}${near}${memory}; ${had}${divided}${restrictions(slots, scope, request)}`;
}

function considered(slots: readonly GpuSlot[], scope: Scope): readonly GpuSlot[] {
  return scope.among.map((position) => slots[position] as GpuSlot);
}

/** How much of the request a GPU could satisfy: the scarcer of its two resources counts. */
function reach(slot: GpuSlot, request: PlacementRequest): number {
  const memory = request.memoryBytes === 0 ? 1 : Math.min(1, slot.freeMemoryBytes / request.memoryBytes);
  return Math.min(memory, Math.min(1, slot.freeCores / request.cores)) * 2 + memory;
}

function restrictions(slots: readonly GpuSlot[], scope: Scope, request: PlacementRequest): string {
  const names = (positions: readonly number[]) =>
    positions.map((position) => (slots[position] as GpuSlot).gpu.index).join(', ');
  const unusable = scope.among.filter((position) => !(slots[position] as GpuSlot).usable);
  return [
    scope.among.length < slots.length ? `; only ${names(scope.among) || 'none'} may be chosen` : '',
    scope.must.length > 0 ? `; ${names(scope.must)} has to be part` : '',
    unusable.length > 0 ? `; ${names(unusable)} is unhealthy or excluded` : '',
    selectionInWords(request.selection ?? ANY_GPUS),
  ].join('');
}

function inMib(bytes: number): string {
  return `${Math.floor(bytes / MIB)} MiB`;
}
