import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import type { PlacementOptions } from '../placement/request.js';
import type { GpuSlot } from '../placement/slot.js';
import { checkCores, checkMemory, checkPair, isFraction, refuse, type Refusal } from '../request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, RESOURCE_NAME, type ResourceKind } from '../resources.js';
import { coreIdsOf, memoryIdsOf } from './allocation.js';
import { mayBelongTogether, type PendingContainer, type PendingContainers } from './pending.js';
import { slots, type LedgerState } from './state.js';

/** The kubelet's GetPreferredAllocation for one resource of one container. */
export interface PreferenceRequest {
  readonly kind: ResourceKind;
  /** Ids the kubelet may hand out, `mustInclude` among them. */
  readonly available: readonly string[];
  /** Ids of init containers of the same pod that are used again. */
  readonly mustInclude: readonly string[];
  /** How many ids the container gets, `mustInclude` among them. */
  readonly size: number;
  readonly pending: PendingContainers;
}

/** A refusal of what a waiting pod asks for, whatever is free. */
export type BrokenRule = Refusal & {
  /** The oldest pod that it may be. It fails as a whole and never asks again. */
  readonly podUid: string;
};

export type Preference =
  { readonly ok: true; readonly ids: readonly string[]; readonly gpus: readonly Gpu[] } | Refusal | BrokenRule;

/**
 * Chooses the ids for a container. The state does not change: the kubelet takes the ids that it is given and says so
 * with Allocate, or never comes back.
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
  const free = slots(state, { coreIds: new Set(request.mustInclude), memoryIds: new Set() });
  const perGpu = Math.min(request.size, CORES_PER_GPU);
  const offered = countByGpu(state, request.available);
  const among = free.filter((slot) => (offered.get(slot.gpu.uuid) ?? 0) >= perGpu).map((slot) => slot.gpu.index);

  const half = openMemory(state, request.size, request.pending);
  if (half !== null) {
    const joined = joinMemory(state, request.size, half, free, must);
    if (joined !== null) return joined;
  }
  const candidates = matching(request.pending, 'core', request.size);
  const paired = checkCandidates(candidates);
  if (paired !== null) return paired;
  // Memory that was joined to the cores before may be of these: without knowledge of pods, be prepared for that.
  const joined = request.pending === null && state.open?.kind === 'joined' ? state.open.memoryIds.length : 0;
  const memoryNeeds = half === null ? plausibleMemory(candidates, request.size, joined) : [half.length];
  const hint = hintOf(state, request, candidates);
  let refusal: Refusal | null = null;
  // First where the ids of one GPU suffice, then anywhere: the ids of another GPU can stand for it.
  for (const options of [{ mustInclude: must, among, hint }, { among, hint }, { hint }] satisfies PlacementOptions[]) {
    for (const blocks of memoryNeeds) {
      const placed = place(
        state.node.topology,
        free,
        { cores: request.size, memoryBytes: blocks * MEMORY_BLOCK_BYTES },
        options,
      );
      if (placed.ok) return placed;
      refusal ??= tooMuch(state, request.size, blocks) ?? refuse('nothing-fits', placed.reason);
    }
  }
  return refusal ?? refuse('nothing-fits', 'no GPU on this node');
}

/** The GPUs for cores whose memory ids came first: those of the memory, if they have the cores. */
function joinMemory(
  state: LedgerState,
  cores: number,
  half: readonly string[],
  free: readonly GpuSlot[],
  must: readonly number[],
): ChosenGpus | null {
  const among = ownersOf(state, half);
  const gpus = isFraction(cores) ? 1 : cores / CORES_PER_GPU;
  if (isFraction(cores) && among.length !== 1) return null;
  // Their memory is held already: by this very container.
  const options =
    among.length <= gpus ? { mustInclude: [...new Set([...among, ...must])] } : { among, mustInclude: must };
  const placed = place(state.node.topology, free, { cores, memoryBytes: 0 }, options);
  return placed.ok ? placed : null;
}

function gpusForMemory(state: LedgerState, request: PreferenceRequest): ChosenGpus {
  const reused = { coreIds: new Set<string>(), memoryIds: new Set(request.mustInclude) };
  const free = slots(state, reused);
  const open = openCores(state, request.size, request.pending);
  if (open !== null) {
    const own = free.filter((slot) => open.gpuUuids.includes(slot.gpu.uuid));
    const bytes = own.reduce((sum, slot) => sum + slot.freeMemoryBytes, 0);
    if (bytes >= request.size * MEMORY_BLOCK_BYTES) return { ok: true, gpus: own.map((slot) => slot.gpu) };
    const cores = open.cores;
    return (
      tooMuch(state, cores, request.size) ??
      refuse(
        'nothing-fits',
        `asked for ${request.size} blocks of 256 MiB on GPU ${own.map((slot) => slot.gpu.index).join(', ')}, where ${bytes / MEMORY_BLOCK_BYTES} are free`,
      )
    );
  }
  const candidates = matching(request.pending, 'memory', request.size);
  const paired = checkCandidates(candidates);
  if (paired !== null) return paired;
  const must = ownersOf(state, request.mustInclude);
  const hint = hintOf(state, request, candidates);
  const memoryBytes = request.size * MEMORY_BLOCK_BYTES;
  let refusal: Refusal | null = null;
  for (const options of [{ mustInclude: must, hint }, { hint }] satisfies PlacementOptions[]) {
    for (const cores of plausibleCores(candidates)) {
      const placed = place(state.node.topology, free, { cores, memoryBytes }, options);
      if (placed.ok) return placed;
      refusal ??= tooMuch(state, cores, request.size) ?? refuse('nothing-fits', placed.reason);
    }
  }
  // Either nothing is known of the cores that will follow, or none are free as far as is known: cores of a pod that just
  // ended count until the kubelet offers them, which it does when it asks for cores. That request decides.
  const roomy = roomiest(free, memoryBytes, must) ?? roomiest(free, memoryBytes, []);
  if (roomy !== null) return { ok: true, gpus: [roomy] };
  return (
    refusal ??
    tooMuch(state, CORES_PER_GPU, request.size) ??
    refuse('nothing-fits', `no GPU with ${request.size} free blocks of 256 MiB`)
  );
}

/** The GPU with that much memory and the most free cores; `must`: the only indexes it may have. */
function roomiest(free: readonly GpuSlot[], memoryBytes: number, must: readonly number[]): Gpu | null {
  const fitting = free.filter(
    (slot) => slot.usable && slot.freeMemoryBytes >= memoryBytes && must.every((index) => index === slot.gpu.index),
  );
  return fitting.sort((a, b) => b.freeCores - a.freeCores || a.gpu.index - b.gpu.index)[0]?.gpu ?? null;
}

/** The GPUs (indexes) that ids belong to, ascending. */
export function ownersOf(state: LedgerState, ids: readonly string[]): number[] {
  const uuids = new Set(ids.map((id) => state.node.ids.decode(id)?.gpuUuid));
  return state.node.gpus.filter(({ gpu }) => uuids.has(gpu.uuid)).map(({ gpu }) => gpu.index);
}

/** The memory ids that wait for their cores, if these may be the cores. */
export function openMemory(state: LedgerState, cores: number, pending: PendingContainers): readonly string[] | null {
  if (state.open?.kind !== 'memory') return null;
  return mayBelongTogether(pending, cores, state.open.memoryIds.length) ? state.open.memoryIds : null;
}

export interface OpenCores {
  readonly allocationId: string;
  readonly cores: number;
  readonly gpuUuids: readonly string[];
}

/** The allocation that waits for its memory, if this may be its memory. */
export function openCores(state: LedgerState, memoryBlocks: number, pending: PendingContainers): OpenCores | null {
  if (state.open?.kind !== 'core') return null;
  const allocation = state.allocations.get(state.open.allocationId);
  if (allocation === undefined) return null;
  const cores = allocation.parts.reduce((sum, part) => sum + part.coreIds.length, 0);
  if (!mayBelongTogether(pending, cores, memoryBlocks)) return null;
  return { allocationId: allocation.id, cores, gpuUuids: allocation.parts.map((part) => part.gpuUuid) };
}

function matching(pending: PendingContainers, kind: ResourceKind, size: number): readonly PendingContainer[] {
  return (pending ?? []).filter((container) => (kind === 'core' ? container.cores : container.memoryBlocks) === size);
}

/** Refuses at once what no candidate can be right about: a part without memory, memory without cores. */
function checkCandidates(candidates: readonly PendingContainer[]): BrokenRule | null {
  const [first] = candidates;
  if (first === undefined) return null;
  const problems = candidates.map((candidate) => checkPair(candidate));
  const [reason] = problems;
  return reason !== null && reason !== undefined && problems.every((problem) => problem !== null)
    ? { ...reason, podUid: first.podUid }
    : null;
}

/** Memory that may follow these cores, largest first: the GPU should suit every candidate. */
function plausibleMemory(candidates: readonly PendingContainer[], cores: number, joined: number): number[] {
  const known = distinct(candidates.map((candidate) => candidate.memoryBlocks)).sort((a, b) => b - a);
  if (known.length > 0) return known;
  const least = isFraction(cores) ? 1 : 0;
  return joined > least ? [joined, least] : [least];
}

/** Cores that may follow this memory: the kind that the oldest candidate asks for first, and of each kind the largest. */
function plausibleCores(candidates: readonly PendingContainer[]): number[] {
  const known = distinct(
    candidates.map((candidate) => candidate.cores).filter((cores) => checkCores(cores, true) === null),
  );
  const oldest = isFraction(known[0] ?? 0);
  return known.sort((a, b) => Number(isFraction(b) === oldest) - Number(isFraction(a) === oldest) || b - a);
}

/**
 * The GPUs (indexes) that the extender meant for the oldest of the candidates that was not answered yet. One that was answered goes on waiting, as
 * far as its pod tells, until it starts: each answer of this size that nobody is known to own stands for the oldest candidate with that
 * prediction or, where it came to other GPUs, for the oldest that is left.
 */
function hintOf(
  state: LedgerState,
  { kind, size }: PreferenceRequest,
  candidates: readonly PendingContainer[],
): readonly number[] {
  const answered = unownedAnswers(state, kind, size).map((ids) => ownersOf(state, ids).join());
  const waiting = candidates.filter(({ hint }) => {
    const at = answered.indexOf([...hint].sort((a, b) => a - b).join());
    if (at >= 0) answered.splice(at, 1);
    return at < 0;
  });
  return waiting.slice(answered.length).find(({ hint }) => hint.length > 0)?.hint ?? [];
}

/** Ids of that kind that were handed out `size` at a time and are not known to be anybody's. */
function unownedAnswers(state: LedgerState, kind: ResourceKind, size: number): (readonly string[])[] {
  const unowned = [...state.allocations.values()].filter(({ owners }) => owners.length === 0);
  const held = unowned.map((allocation) => (kind === 'core' ? coreIdsOf(allocation) : memoryIdsOf(allocation)));
  const halves = kind === 'memory' ? state.halves.map(({ memoryIds }) => memoryIds) : [];
  return [...held, ...halves].filter((ids) => ids.length === size);
}

function tooMuch(state: LedgerState, cores: number, memoryBlocks: number): Refusal | null {
  return checkMemory(
    { cores, memoryBlocks },
    state.node.gpus.map(({ gpu }) => gpu.memoryBytes),
  );
}

function distinct(numbers: readonly number[]): number[] {
  return [...new Set(numbers)];
}

function countByGpu(state: LedgerState, ids: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) {
    const uuid = state.node.ids.decode(id)?.gpuUuid;
    if (uuid !== undefined) counts.set(uuid, (counts.get(uuid) ?? 0) + 1);
  }
  return counts;
}

/**
 * `size` of the available ids: those that must be, then ids of the chosen GPUs in equal shares, lowest numbers first,
 * and only where these do not suffice ids of other GPUs, of which most are left over. Null when there are not enough.
 */
function pickIds(state: LedgerState, request: PreferenceRequest, gpus: readonly Gpu[]): string[] | null {
  const must = new Set(request.mustInclude);
  const byGpu = new Map<string, { id: string; number: number }[]>();
  for (const id of request.available) {
    const decoded = state.node.ids.decode(id);
    if (decoded === null || must.has(id)) continue;
    const list = byGpu.get(decoded.gpuUuid) ?? [];
    list.push({ id, number: decoded.number });
    byGpu.set(decoded.gpuUuid, list);
  }
  for (const list of byGpu.values()) list.sort((a, b) => a.number - b.number);
  const picked = [...must];
  const take = (uuid: string, count: number): void => {
    const list = byGpu.get(uuid) ?? [];
    picked.push(...list.splice(0, Math.max(0, Math.min(count, request.size - picked.length))).map((entry) => entry.id));
  };
  const heldOf = countByGpu(state, request.mustInclude);
  const share = Math.ceil(request.size / Math.max(1, gpus.length));
  for (const gpu of gpus) take(gpu.uuid, share - (heldOf.get(gpu.uuid) ?? 0));
  for (const gpu of gpus) take(gpu.uuid, request.size);
  const others = [...byGpu.entries()].sort((a, b) => b[1].length - a[1].length);
  for (const [uuid] of others) take(uuid, request.size);
  return picked.length === request.size ? picked : null;
}
