import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import type { PlacementOptions } from '../placement/request.js';
import type { GpuSlot } from '../placement/slot.js';
import { checkCores, checkMemory, isFraction, refuse, type Refusal } from '../request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, RESOURCE_NAME, memoryBlocks, type ResourceKind } from '../resources.js';
import { gpuWithRoom } from './open-gpu.js';
import {
  checkCandidates,
  gpuOfOpenMemory,
  matchingContainers,
  openCores,
  openMemory,
  plausibleCores,
  plausibleMemory,
  predictedGpus,
  type BrokenRule,
} from './pairing.js';
import { peakOf, type Amounts, type PendingContainer, type PendingContainers } from './pending.js';
import { countByGpu, pickIds } from './pick-ids.js';
import { ownersOf, pluginSlots, reusedWith, type LedgerState } from './state.js';

/** The kubelet's GetPreferredAllocation for one resource of one container. */
export interface PreferenceRequest {
  readonly kind: ResourceKind;
  /** Ids that the kubelet may allocate, including `mustInclude`. */
  readonly available: readonly string[];
  /** Ids of init containers of the same pod, which are reused. */
  readonly mustInclude: readonly string[];
  /** How many ids the container gets, including `mustInclude`. */
  readonly size: number;
  readonly pending: PendingContainers;
}

export type Preference =
  { readonly ok: true; readonly ids: readonly string[]; readonly gpus: readonly Gpu[] } | Refusal | BrokenRule;

/**
 * Chooses the ids for a container. The state does not change: the kubelet confirms the ids with Allocate, or never
 * calls again.
 */
export function prefer(state: LedgerState, request: PreferenceRequest): Preference {
  const chosen = request.kind === 'core' ? gpusForCores(state, request) : gpusForMemory(state, request);
  if (!chosen.ok) return chosen;
  const ids = pickIds(state, request, chosen.gpus);
  if (ids !== null) return { ok: true, ids, gpus: chosen.gpus };
  return refuse(
    'nothing-fits',
    `${RESOURCE_NAME[request.kind]}: ${request.size} asked for, but the kubelet offers ${request.available.length}`,
  );
}

export type ChosenGpus = { readonly ok: true; readonly gpus: readonly Gpu[] } | Refusal | BrokenRule;

function gpusForCores(state: LedgerState, request: PreferenceRequest): ChosenGpus {
  const wrong = checkCores(request.size, state.node.shareMode);
  if (wrong !== null) return wrong;
  const must = ownersOf(state, request.mustInclude);
  const half = openMemory(state, request.size, request.pending);
  const reused = reusedWith(state, request.mustInclude);
  const free = pluginSlots(state, {
    coreIds: new Set([...request.mustInclude, ...reused.coreIds]),
    memoryIds: new Set([...reused.memoryIds, ...(half ?? [])]),
  });
  const perGpu = Math.min(request.size, CORES_PER_GPU);
  const offered = countByGpu(state, request.available);
  const among = free.filter((slot) => (offered.get(slot.gpu.uuid) ?? 0) >= perGpu).map((slot) => slot.gpu.index);

  if (half !== null) {
    const named = gpuOfOpenMemory(state);
    const joined = joinMemory(
      state,
      { cores: request.size, memoryBlocks: half.length },
      named.length > 0 ? named : ownersOf(state, half),
      free,
      must,
    );
    if (joined !== null) return joined;
    if (named.length > 0)
      return refuse(
        'nothing-fits',
        `asked for ${request.size} cores beside memory on GPU ${named.join(', ')}, which has too few free`,
      );
  }
  const candidates = matchingContainers(request.pending, 'core', request.size);
  const paired = checkCandidates(candidates);
  if (paired !== null) return paired;
  // Without knowledge of pods, memory that was joined to the last cores may belong to these cores: allow for it.
  const joined = request.pending === null && state.open?.kind === 'joined' ? state.open.memoryIds.length : 0;
  const memoryNeeds =
    half !== null
      ? [half.length]
      : [
          ...(candidates.length === 0 ? expectedMemory(free, request.size) : []),
          ...plausibleMemory(candidates, request.size, joined),
        ];
  const hint = predictedGpus(state, request, candidates);
  const equalGpus = candidates.length > 0 && candidates.every((candidate) => candidate.equalGpus === true);
  let refusal: Refusal | null = null;
  const own = { cores: request.size, memoryBlocks: Math.max(...memoryNeeds) };
  const roomy = half === null ? gpusForPeak(state, free, own, candidates, { mustInclude: must, hint }) : null;
  // First GPUs whose own ids suffice, then any GPU: ids of another GPU can be used for it.
  for (const options of [
    ...(roomy === null ? [] : [{ mustInclude: must, among: roomy, hint }]),
    { mustInclude: must, among, hint },
    { among, hint },
    { hint },
  ] satisfies PlacementOptions[]) {
    for (const blocks of memoryNeeds) {
      const placed = place(
        state.node.topology,
        free,
        { cores: request.size, memoryBytes: blocks * MEMORY_BLOCK_BYTES, equalGpus },
        options,
      );
      if (placed.ok) return placed;
      refusal ??= tooMuch(state, request.size, blocks) ?? refuse('nothing-fits', placed.reason);
    }
  }
  return refusal ?? refuse('nothing-fits', 'no GPU on this node');
}

/**
 * The GPUs (indexes) on which the containers that reuse the ids of an init container have room as well; null if none of
 * the candidates is an init container with more to follow, or if there is no such room.
 */
function gpusForPeak(
  state: LedgerState,
  free: readonly GpuSlot[],
  own: Amounts,
  candidates: readonly PendingContainer[],
  options: PlacementOptions,
): readonly number[] | null {
  const peak = peakOf([own, ...candidates.flatMap((candidate) => candidate.peak ?? [])]);
  if (checkCores(peak.cores, state.node.shareMode) !== null) return null;
  if (peak.cores === own.cores && peak.memoryBlocks === own.memoryBlocks) return null;
  const { cores, memoryBlocks: blocks } = peak;
  const placed = place(state.node.topology, free, { cores, memoryBytes: blocks * MEMORY_BLOCK_BYTES }, options);
  return placed.ok ? placed.gpus.map(({ index }) => index) : null;
}

/**
 * Memory that may follow a part of a GPU whose pod is unknown: 1.5 times its share of a GPU's memory, or as much as any
 * GPU with the cores has. If more memory is requested, the part moves and its core ids name another GPU; a part on a
 * GPU that is too free leaves fewer whole GPUs.
 */
function expectedMemory(free: readonly GpuSlot[], cores: number): number[] {
  if (!isFraction(cores)) return [];
  const fitting = free.filter((slot) => slot.usable && slot.freeCores >= cores);
  const blocks = fitting.map((slot) =>
    Math.min(
      memoryBlocks(slot.freeMemoryBytes),
      Math.ceil((1.5 * cores * memoryBlocks(slot.gpu.memoryBytes)) / CORES_PER_GPU),
    ),
  );
  return blocks.length === 0 ? [] : [Math.max(...blocks)];
}

/** The GPUs for cores whose memory was requested first: the GPUs of the memory ids, if they have the cores. */
function joinMemory(
  state: LedgerState,
  { cores, memoryBlocks: blocks }: Amounts,
  among: readonly number[],
  free: readonly GpuSlot[],
  must: readonly number[],
): ChosenGpus | null {
  const gpus = isFraction(cores) ? 1 : cores / CORES_PER_GPU;
  if (isFraction(cores) && among.length !== 1) return null;
  const options =
    among.length <= gpus ? { mustInclude: [...new Set([...among, ...must])] } : { among, mustInclude: must };
  const placed = place(state.node.topology, free, { cores, memoryBytes: blocks * MEMORY_BLOCK_BYTES }, options);
  return placed.ok ? placed : null;
}

function gpusForMemory(state: LedgerState, request: PreferenceRequest): ChosenGpus {
  const beside = reusedWith(state, request.mustInclude);
  const reused = { coreIds: beside.coreIds, memoryIds: new Set([...request.mustInclude, ...beside.memoryIds]) };
  const free = pluginSlots(state, reused);
  const open = openCores(state, request.size, request.pending);
  if (open !== null) {
    const own = free.filter((slot) => open.gpuUuids.includes(slot.gpu.uuid));
    const bytes = own.reduce((sum, slot) => sum + slot.freeMemoryBytes, 0);
    if (bytes >= request.size * MEMORY_BLOCK_BYTES) return { ok: true, gpus: own.map((slot) => slot.gpu) };
    const moved =
      open.allocation.isGpuOpen === true ? gpuWithRoom(state, open.allocation, request.size, reused.memoryIds) : null;
    if (moved !== null) return { ok: true, gpus: [moved] };
    const cores = open.cores;
    return (
      tooMuch(state, cores, request.size) ??
      refuse(
        'nothing-fits',
        `asked for ${request.size} blocks of 256 MiB on GPU ${own.map((slot) => slot.gpu.index).join(', ')}, where ${bytes / MEMORY_BLOCK_BYTES} are free`,
      )
    );
  }
  const candidates = matchingContainers(request.pending, 'memory', request.size);
  const paired = checkCandidates(candidates);
  if (paired !== null) return paired;
  const must = ownersOf(state, request.mustInclude);
  const hint = predictedGpus(state, request, candidates);
  const memoryBytes = request.size * MEMORY_BLOCK_BYTES;
  let refusal: Refusal | null = null;
  const own = { cores: plausibleCores(candidates)[0] ?? 0, memoryBlocks: request.size };
  const peakGpus = gpusForPeak(state, free, own, candidates, { mustInclude: must, hint });
  for (const options of [
    ...(peakGpus === null ? [] : [{ mustInclude: must, among: peakGpus, hint }]),
    { mustInclude: must, hint },
    { hint },
  ] satisfies PlacementOptions[]) {
    for (const cores of plausibleCores(candidates)) {
      const placed = place(state.node.topology, free, { cores, memoryBytes }, options);
      if (placed.ok) return placed;
      refusal ??= tooMuch(state, cores, request.size) ?? refuse('nothing-fits', placed.reason);
    }
  }
  // Either the cores that will follow are unknown, or no cores seem free: cores of a pod that just ended count as held
  // until the kubelet offers them in its request for cores. That request decides.
  const roomy = roomiest(free, memoryBytes, must) ?? roomiest(free, memoryBytes, []);
  if (roomy !== null) return { ok: true, gpus: [roomy] };
  return (
    refusal ??
    tooMuch(state, CORES_PER_GPU, request.size) ??
    refuse('nothing-fits', `no GPU with ${request.size} free blocks of 256 MiB`)
  );
}

/** The GPU with enough memory and the most free cores; `must`: the only indexes that are allowed, if not empty. */
function roomiest(free: readonly GpuSlot[], memoryBytes: number, must: readonly number[]): Gpu | null {
  const fitting = free.filter(
    (slot) => slot.usable && slot.freeMemoryBytes >= memoryBytes && must.every((index) => index === slot.gpu.index),
  );
  return fitting.sort((a, b) => b.freeCores - a.freeCores || a.gpu.index - b.gpu.index)[0]?.gpu ?? null;
}

function tooMuch(state: LedgerState, cores: number, memoryBlocks: number): Refusal | null {
  return checkMemory(
    { cores, memoryBlocks },
    state.node.gpus.map(({ gpu }) => gpu.memoryBytes),
  );
}
