import { allows, ANY_GPUS, kindOf, type GpuSelection } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import { isInstance } from '../mig.js';
import { CORES_PER_GPU } from '../resources.js';
import { gpuCount, type Topology } from '../topology/topology.js';
import type { Choice } from './choice.js';
import { chooseFragment } from './fragment.js';
import { chooseLink } from './link.js';
import { machineOf, partOf, type Machine } from './machine.js';
import { explainParts, explainShare, explainWhole } from './refusal.js';
import type { PlacementOptions, PlacementRequest, Scope } from './request.js';
import { MAX_TABLE_GPUS } from './set-table.js';
import { chooseParts } from './parts.js';
import { chooseShare } from './share.js';
import { hasRoomFor, isWhole, isWholeOffer, type GpuSlot } from './slot.js';

export type PlacementRefusal = 'invalid-cores' | 'does-not-fit';

export type Placement =
  | { readonly ok: true; readonly gpus: readonly Gpu[] }
  | { readonly ok: false; readonly code: PlacementRefusal; readonly reason: string };

/**
 * Chooses the GPU or GPUs for a container. `slots[i]` is the GPU at position i of the topology. Pure and deterministic:
 * the same node in the same state always gives the same answer; of equally good answers the one with the lowest GPU
 * indexes wins.
 *
 * For a part whose memory (or cores) is not known yet, pass the largest amount that may follow: the chosen GPU has room
 * for it. A refusal names the request and the capacity of the best GPU.
 */
export function place(
  topology: Topology,
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  options: PlacementOptions = {},
): Placement {
  if (slots.length !== gpuCount(topology)) throw new RangeError(`${slots.length} slots for ${gpuCount(topology)} GPUs`);
  const { cores } = request;
  if (!Number.isInteger(cores) || cores <= 0 || (cores > CORES_PER_GPU && cores % CORES_PER_GPU !== 0)) {
    return {
      ok: false,
      code: 'invalid-cores',
      reason: `asked for ${cores} cores: a part of a GPU is 1 to ${CORES_PER_GPU - 1}, whole GPUs are a multiple of ${CORES_PER_GPU}`,
    };
  }
  const scope = scopeOf(slots, request.selection ?? ANY_GPUS, options);
  const machine = machineOf(topology);
  const isPart = cores < CORES_PER_GPU;
  const arePartsOfSeveral = isPart && (request.gpus ?? 1) > 1;
  const placeIt = arePartsOfSeveral ? placeParts : isPart ? placePart : placeWhole;
  const positions = placeIt(machine, slots, request, scope);
  if (positions !== null) return { ok: true, gpus: positions.map((position) => (slots[position] as GpuSlot).gpu) };
  const explain = arePartsOfSeveral ? explainParts : isPart ? explainShare : explainWhole;
  return { ok: false, code: 'does-not-fit', reason: explain(slots, request, scope) };
}

function scopeOf(slots: readonly GpuSlot[], selection: GpuSelection, options: PlacementOptions): Scope {
  const positionsOf = (indexes: readonly number[]) =>
    [...slots.keys()].filter((at) => indexes.includes((slots[at] as GpuSlot).gpu.index));
  const among = options.among === undefined ? [...slots.keys()] : positionsOf(options.among);
  return {
    hint: positionsOf(options.hint ?? []),
    among: among.filter((position) => allows(selection, (slots[position] as GpuSlot).gpu)),
    must: positionsOf(options.mustInclude ?? []),
  };
}

function placePart(
  machine: Machine,
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  scope: Scope,
): readonly number[] | null {
  const fitting = scope.among.filter((position) => {
    const slot = slots[position] as GpuSlot;
    const wanted = scope.must.every((must) => must === position);
    return wanted && hasRoomFor(slot, request);
  });
  const hinted = fitting.filter((position) => scope.hint.includes(position));
  const chosen = chooseShare(machine, slots, hinted.length > 0 ? hinted : fitting, request.selection?.gpuPolicy);
  return chosen === null ? null : [chosen];
}

/** Equal parts of several GPUs: the GPUs with room that are connected best. Instances of MIG reach no other GPU. */
function placeParts(
  machine: Machine,
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  scope: Scope,
): readonly number[] | null {
  const { gpus: count = 1, selection = ANY_GPUS } = request;
  const fitting = scope.among.filter((position) => {
    const slot = slots[position] as GpuSlot;
    return !isInstance(slot.gpu) && hasRoomFor(slot, request);
  });
  const hinted = fitting.filter((position) => scope.hint.includes(position));
  for (const candidates of [hinted, fitting]) {
    const groups = groupsOf(slots, candidates, (gpu) => kindOf(selection, gpu)).filter(
      (group) => group.length >= count && scope.must.every((position) => group.includes(position)),
    );
    const chosen =
      scope.must.length > count ? null : chooseParts(machine, slots, { count, selection }, groups, scope.must);
    if (chosen !== null) return chosen;
  }
  return null;
}

function placeWhole(
  machine: Machine,
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  scope: Scope,
): readonly number[] | null {
  const isFree = request.selection?.suspendable === true ? isWholeOffer : isWhole;
  const free = scope.among.filter((position) => isFree(slots[position] as GpuSlot));
  if (!scope.must.every((position) => free.includes(position))) return null;
  const processesOf = (position: number): number => (slots[position] as GpuSlot).processCount;
  // Suspendable containers take turns, so these go where the fewest do.
  const fewest = request.selection?.suspendable === true ? Math.min(...free.map(processesOf)) : 0;
  const quiet = free.filter((position) => processesOf(position) <= fewest || scope.must.includes(position));
  const hinted = free.filter((position) => scope.hint.includes(position));
  const isPart = (position: number): boolean => isInstance((slots[position] as GpuSlot).gpu);
  // A foreign program may use a free GPU that has processes, so it is chosen only if no other GPU fits.
  for (const candidates of [hinted, quiet, free]) {
    const from = candidates.filter((position) => !isPart(position));
    const any = choiceOf(slots, request, from, scope.must);
    const groups = groupsOf(slots, from, (gpu) => kindOf(request.selection ?? ANY_GPUS, gpu));
    // Work on several GPUs runs at the speed of the slowest and fits in the memory of the smallest.
    const equal = groups.flatMap((group) => groupsOf(slots, group, (gpu) => `${gpu.memoryBytes} ${gpu.model}`));
    const alternatives = (sets: readonly (readonly number[])[]) => sets.map((free) => ({ ...any, free }));
    const chosen =
      chooseWhole(machine, alternatives(equal)) ??
      (equal.length === groups.length ? null : chooseWhole(machine, alternatives(groups)));
    if (chosen !== null) return chosen;
  }
  // Instances of MIG reach no other GPU, so only one of them can serve; GPUs that are not divided serve more, and sets.
  if (request.cores > CORES_PER_GPU) return null;
  for (const candidates of [hinted, quiet, free]) {
    const chosen = chooseInstance(slots, request, candidates.filter(isPart), scope.must);
    if (chosen !== null) return [chosen];
  }
  return null;
}

/** The instance with the least memory that suffices: larger ones serve more requests. */
function chooseInstance(
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  free: readonly number[],
  must: readonly number[],
): number | null {
  const memory = (position: number): number => (slots[position] as GpuSlot).freeMemoryBytes;
  const fitting = free.filter(
    (position) => memory(position) >= request.memoryBytes && must.every((one) => one === position),
  );
  return [...fitting].sort((a, b) => memory(a) - memory(b) || a - b)[0] ?? null;
}

/** The positions by kind of GPU. */
function groupsOf(
  slots: readonly GpuSlot[],
  positions: readonly number[],
  kind: (gpu: Gpu) => string,
): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const position of positions) {
    const key = kind((slots[position] as GpuSlot).gpu);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [position]);
    else group.push(position);
  }
  return [...groups.values()];
}

function choiceOf(
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  free: readonly number[],
  must: readonly number[],
): Choice {
  return {
    free,
    nodeFree: wholeOf(slots),
    must,
    count: request.cores / CORES_PER_GPU,
    needMemoryBytes: request.memoryBytes,
    memoryBytes: slots.map((slot) => slot.freeMemoryBytes),
    processCounts: slots.map((slot) => slot.processCount),
  };
}

function wholeOf(slots: readonly GpuSlot[]): readonly number[] {
  return [...slots.keys()].filter((position) => {
    const slot = slots[position] as GpuSlot;
    return isWhole(slot) && !isInstance(slot.gpu);
  });
}

/** The best of the alternatives, which differ only in the GPUs that may be chosen. */
function chooseWhole(machine: Machine, alternatives: readonly Choice[]): readonly number[] | null {
  const choices = alternatives.filter(
    ({ free, count, must }) =>
      free.length >= count && must.length <= count && must.every((position) => free.includes(position)),
  );
  const [any] = choices;
  if (any === undefined) return null;
  if (machine.exact === null && any.nodeFree.length <= MAX_TABLE_GPUS) return chooseInPart(machine, choices);
  if (any.count > 1) return chooseLink(machine, choices);
  const free = choices.flatMap((choice) => choice.free).sort((a, b) => a - b);
  const single = chooseFragment(machine, { ...any, free });
  return single === null ? null : [single];
}

/** Searches only the free GPUs of a large machine if they are few enough for exact answers. */
function chooseInPart(machine: Machine, choices: readonly Choice[]): readonly number[] | null {
  const { nodeFree } = choices[0] as Choice;
  const inPart = (positions: readonly number[]) => positions.map((position) => nodeFree.indexOf(position));
  const pick = <T>(values: readonly T[]) => nodeFree.map((position) => values[position] as T);
  const chosen = chooseWhole(
    partOf(machine.topology, nodeFree),
    choices.map((choice) => ({
      ...choice,
      free: inPart(choice.free),
      nodeFree: [...nodeFree.keys()],
      must: inPart(choice.must),
      memoryBytes: pick(choice.memoryBytes),
      processCounts: pick(choice.processCounts),
    })),
  );
  return chosen?.map((position) => nodeFree[position] as number) ?? null;
}

/**
 * True when more GPUs are free than exact search supports: the set of several whole GPUs is good, but perhaps not the
 * best.
 */
export function isApproximate(slots: readonly GpuSlot[]): boolean {
  return wholeOf(slots).length > MAX_TABLE_GPUS;
}
