import type { Gpu } from '../gpu.js';
import { CORES_PER_GPU } from '../resources.js';
import { gpuCount, type Topology } from '../topology/topology.js';
import type { Choice } from './choice.js';
import { chooseFragment } from './fragment.js';
import { chooseLink } from './link.js';
import { machineOf, type Machine } from './machine.js';
import { explainShare, explainWhole } from './refusal.js';
import type { PlacementOptions, PlacementRequest, Scope } from './request.js';
import { chooseShare } from './share.js';
import { isWhole, type GpuSlot } from './slot.js';

export type PlacementRefusal = 'invalid-cores' | 'does-not-fit';

export type Placement =
  | { readonly ok: true; readonly gpus: readonly Gpu[] }
  | { readonly ok: false; readonly code: PlacementRefusal; readonly reason: string };

/**
 * Chooses the GPU or GPUs for a container. `slots[i]` is the GPU at position i of the topology. Pure, and
 * deterministic: the same node in the same state always gives the same answer; among answers of equal worth the lowest
 * GPU indexes win.
 *
 * For a part whose memory (or cores) is not known yet, pass the largest counterpart that may follow: the GPU chosen has
 * room for it. A refusal says what was asked for and what the best GPU had.
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
  const scope = scopeOf(slots, options);
  const machine = machineOf(topology);
  const positions =
    cores < CORES_PER_GPU ? placePart(machine, slots, request, scope) : placeWhole(machine, slots, request, scope);
  if (positions !== null) return { ok: true, gpus: positions.map((position) => (slots[position] as GpuSlot).gpu) };
  const explain = cores < CORES_PER_GPU ? explainShare : explainWhole;
  return { ok: false, code: 'does-not-fit', reason: explain(slots, request, scope) };
}

function scopeOf(slots: readonly GpuSlot[], options: PlacementOptions): Scope {
  const positionsOf = (indexes: readonly number[]) =>
    [...slots.keys()].filter((at) => indexes.includes((slots[at] as GpuSlot).gpu.index));
  return {
    hint: positionsOf(options.hint ?? []),
    among: options.among === undefined ? [...slots.keys()] : positionsOf(options.among),
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
    return wanted && slot.usable && slot.freeCores >= request.cores && slot.freeMemoryBytes >= request.memoryBytes;
  });
  const hinted = fitting.filter((position) => scope.hint.includes(position));
  const chosen = chooseShare(machine, slots, hinted.length > 0 ? hinted : fitting);
  return chosen === null ? null : [chosen];
}

function placeWhole(
  machine: Machine,
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  scope: Scope,
): readonly number[] | null {
  const free = scope.among.filter((position) => isWhole(slots[position] as GpuSlot));
  if (!scope.must.every((position) => free.includes(position))) return null;
  const quiet = free.filter(
    (position) => (slots[position] as GpuSlot).processCount === 0 || scope.must.includes(position),
  );
  const hinted = free.filter((position) => scope.hint.includes(position));
  // A free GPU with processes is used by a program outside our control; it is chosen only if no other GPU fits.
  for (const from of [hinted, quiet, free]) {
    const chosen = chooseWhole(machine, choiceOf(slots, request, from, scope.must));
    if (chosen !== null) return chosen;
  }
  return null;
}

function choiceOf(
  slots: readonly GpuSlot[],
  request: PlacementRequest,
  free: readonly number[],
  must: readonly number[],
): Choice {
  return {
    free,
    nodeFree: [...slots.keys()].filter((position) => isWhole(slots[position] as GpuSlot)),
    must,
    count: request.cores / CORES_PER_GPU,
    needMemoryBytes: request.memoryBytes,
    memoryBytes: slots.map((slot) => slot.freeMemoryBytes),
    processCounts: slots.map((slot) => slot.processCount),
  };
}

function chooseWhole(machine: Machine, choice: Choice): readonly number[] | null {
  if (choice.free.length < choice.count || choice.must.length > choice.count) return null;
  if (!choice.must.every((position) => choice.free.includes(position))) return null;
  if (choice.count > 1) return chooseLink(machine, choice);
  const single = chooseFragment(machine, choice);
  return single === null ? null : [single];
}
