import { dividedRequest, divisionOf, isDivided } from '../division.js';
import { allows, ANY_GPUS, kindOf } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import { isWhole, roomiest, type GpuSlot } from '../placement/slot.js';
import { factorOf, isOverOffer, roomFor } from '../offer.js';
import { refuse, type RequestRefusal } from '../request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks, RESOURCE_NAME, type ResourceKind } from '../resources.js';
import { allocationId, coreIdsOf, memoryIdsOf, type Allocation, type Part } from './allocation.js';
import { isOffered } from './gpu-mode.js';
import { gpuWithRoom, isJoinedToWholeGpus, leavesGpuOpen } from './open-gpu.js';
import { matchingContainers, maySuspend, type PendingContainer, type PendingContainers } from './pending.js';
import { inTurn } from './pod-plan.js';
import { gpuOfOpenMemory, openCores, openMemory } from './pairing.js';
import { countByGpu } from './pick-ids.js';
import { wrongCores } from './question.js';
import {
  heldOn,
  isGivenWhole,
  usedWithoutIds,
  pluginSlots,
  reusedWith,
  slots,
  usage,
  type LedgerState,
  type OpenHalf,
} from './state.js';

/** The kubelet's Allocate for one resource of one container. */
export interface AllocateRequest {
  readonly kind: ResourceKind;
  readonly ids: readonly string[];
  readonly pending: PendingContainers;
  readonly now: number;
  /**
   * The GPUs that these cores already have, because the container was found running; null or absent: they are chosen.
   */
  readonly gpus?: readonly Gpu[] | null;
  /** Whether such a container may be suspended; for another request `pending` tells. */
  readonly isSuspendable?: boolean;
}

export type Allocated =
  | {
      readonly ok: true;
      readonly state: LedgerState;
      /** Null for memory whose cores have not been requested yet. */
      readonly allocation: Allocation | null;
      /** An ended allocation that had these core ids: the kubelet gave them to another container. */
      readonly replaced: Allocation | null;
      /**
       * True for memory that the allocation has already: the kubelet did not receive the first answer, because the
       * agent was restarted, and the first answer may have named the GPU.
       */
      readonly isRepeated?: boolean;
    }
  | RequestRefusal;

/**
 * Records the ids that the kubelet chose. Ids of one GPU, of whole GPUs, or of the parts that a pod's annotation asks
 * for, mean these GPUs. Other ids of several GPUs, which a kubelet without preferred allocation may send, count only by
 * their number, and the request is placed again.
 */
export function allocate(state: LedgerState, request: AllocateRequest): Allocated {
  const unknown = request.ids.find((id) => state.node.ids.decode(id)?.kind !== request.kind);
  if (unknown !== undefined || request.ids.length === 0) {
    return refuse('unknown-ids', `${RESOURCE_NAME[request.kind]}: ${unknown ?? 'no id'} is not a device of this node`);
  }
  return request.kind === 'core' ? allocateCores(state, request) : allocateMemory(state, request);
}

function allocateCores(before: LedgerState, request: AllocateRequest): Allocated {
  const given = request.gpus === undefined ? null : givenGpus(before, request);
  const known = matchingContainers(request.pending, 'core', request.ids.length);
  const wrong = given === null ? wrongCores(before, known, request.ids.length) : null;
  if (wrong !== null) return wrong;
  const id = allocationId(request.ids);
  const existing = before.allocations.get(id);
  // The container has not started: an init container of the same pod uses the same ids, and one directory serves both.
  if (existing?.phase === 'allocated') {
    const isWholeInstance = wholeInstances(before, request.ids) !== null;
    const joined = isWholeInstance ? [] : (openMemory(before, request.ids.length, request.pending) ?? []);
    const { isGpuOpen, ...named } = addMemory(before, existing, joined);
    const kept = isGpuOpen === true && joined.length === 0 ? { ...named, isGpuOpen } : named;
    const state = withAllocation(withoutHalf(before, joined), kept);
    const over = request.gpus === undefined ? overbooked(state, kept) : null;
    if (over !== null) return over;
    const open = joined.length > 0 || isWholeInstance ? null : ({ kind: 'core', allocationId: id } as const);
    return { ok: true, state: { ...state, open }, allocation: state.allocations.get(id) ?? existing, replaced: null };
  }
  const state = existing === undefined ? before : without(before, existing.id);
  const instances = wholeInstances(state, request.ids);
  // A container that requests whole instances gets only these instances.
  const half = instances === null ? (openMemory(state, request.ids.length, request.pending) ?? []) : [];
  const turn = inTurn(state, known, { kind: 'core', size: request.ids.length });
  const chosen = given ?? instances ?? gpusOfCores(state, request.ids, turn, half);
  if (!chosen.ok) return chosen;
  const isSuspendable = (request.isSuspendable ?? maySuspend(turn[0])) && chosen.gpus.length === 1;
  const allocation: Allocation = {
    id,
    parts: partsOf(state, chosen.gpus, request.ids, half),
    phase: 'allocated',
    owners: [],
    allocatedAt: request.now,
    missingSince: null,
    ...wayOf(chosen.gpus),
    isGpuOpen:
      request.gpus === undefined && half.length === 0 && leavesGpuOpen(state, request.pending, request.ids.length),
    ...(isSuspendable ? { suspendable: true } : {}),
  };
  // The memory that was requested before these cores may belong to them, although another allocation has it.
  const isUnsure = before.open?.kind === 'joined' && (before.open.isUnsure === true || isJoinedToWholeGpus(before));
  const open: OpenHalf | null =
    half.length > 0 || instances !== null ? null : { kind: 'core', allocationId: id, isUnsure };
  const next = { ...withAllocation(withoutHalf(state, half), allocation), open };
  // A container that runs already is recorded even if its GPU has no room.
  const over = request.gpus === undefined ? overbooked(next, allocation) : null;
  if (over !== null) return over;
  return { ok: true, state: next, allocation, replaced: existing ?? null };
}

function allocateMemory(state: LedgerState, request: AllocateRequest): Allocated {
  const { ids, now } = request;
  const allocation = openCores(state, ids.length, request.pending);
  if (allocation === null) {
    const repeated = repeatedAfterRestart(state, ids);
    if (repeated !== null) return { ok: true, state, allocation: repeated, replaced: null, isRepeated: true };
    const before = withoutHalf(state, ids);
    const known = matchingContainers(request.pending, 'memory', ids.length);
    const isSuspendable = maySuspend(inTurn(before, known, { kind: 'memory', size: ids.length })[0]);
    const named = gpuOfHalf(before, ids, isSuspendable);
    if (!named.ok) return named;
    const { gpuUuid } = named;
    const half = { memoryIds: ids, takenAt: now, gpuUuid, ...(isSuspendable ? { suspendable: true as const } : {}) };
    const halves = [...before.halves, half];
    const open: OpenHalf = { kind: 'memory', memoryIds: ids, gpuUuid };
    return { ok: true, state: { ...state, halves, open }, allocation: null, replaced: null };
  }
  const joined = addMemory(state, withGpu(state, allocation, request), ids);
  const open: OpenHalf = {
    kind: 'joined',
    allocationId: allocation.id,
    memoryIds: ids,
    takenAt: now,
    isUnsure: state.open?.kind === 'core' && state.open.isUnsure === true,
    gpuUuid: allocation.isGpuOpen === true ? joined.parts[0]?.gpuUuid : undefined,
  };
  const next = { ...withAllocation(state, joined), open };
  const over = overbooked(next, joined);
  if (over !== null) return over;
  return { ok: true, state: next, allocation: joined, replaced: null };
}

/**
 * Where memory is charged whose cores have not been requested: on the GPUs that its ids name, or else on one GPU with
 * room, where the cores have to be then. Refused where no GPU has room.
 */
function gpuOfHalf(
  state: LedgerState,
  ids: readonly string[],
  isSuspendable: boolean,
): { readonly ok: true; readonly gpuUuid?: string } | RequestRefusal {
  const held = [...usage(state).values()];
  const fresh = countByGpu(
    state,
    ids.filter((id) => !held.some(({ memoryIds }) => memoryIds.has(id))),
  );
  const hasRoom = ({ gpu, freeMemoryBytes }: GpuSlot): boolean =>
    freeMemoryBytes >= (fresh.get(gpu.uuid) ?? 0) * MEMORY_BLOCK_BYTES;
  if (pluginSlots(state, undefined, isSuspendable).every(hasRoom)) return { ok: true };
  const wanted = state.node.gpus.find((entry) => entry.gpu.uuid === state.node.ids.decode(ids[0] ?? '')?.gpuUuid)?.gpu;
  const free = pluginSlots(state, reusedWith(state, ids), isSuspendable);
  const alike = free.filter((slot) => slot.gpu.compute === wanted?.compute);
  const gpu = roomiest(alike, ids.length * MEMORY_BLOCK_BYTES);
  if (gpu !== null) return { ok: true, gpuUuid: gpu.uuid };
  return refuse('nothing-fits', `asked for ${ids.length} blocks of 256 MiB, which no GPU has free`);
}

/** The allocation that got exactly these memory ids in the last answer before the agent was restarted; else null. */
function repeatedAfterRestart({ open, allocations }: LedgerState, memoryIds: readonly string[]): Allocation | null {
  if (open?.kind !== 'joined' || open.isRestored !== true || open.memoryIds.length !== memoryIds.length) return null;
  const ids = new Set(open.memoryIds);
  return memoryIds.every((id) => ids.has(id)) ? (allocations.get(open.allocationId) ?? null) : null;
}

/** The allocation on the GPU that has room for this memory, if the choice of the GPU is still open. */
function withGpu(state: LedgerState, allocation: Allocation, { ids, pending }: AllocateRequest): Allocation {
  const { isGpuOpen, ...named } = allocation;
  if (isGpuOpen !== true) return allocation;
  const gpu = gpuWithRoom(state, allocation, { size: ids.length, pending });
  if (gpu === null) return named;
  const { compute: _, ...moved } = named;
  return { ...moved, ...wayOf([gpu]), parts: partsOf(state, [gpu], coreIdsOf(allocation), []) };
}

/**
 * The container already uses these GPUs, so they are recorded even if they have no room. Where the kubelet does not
 * name them, equal numbers of ids of several GPUs stand for parts of these.
 */
function givenGpus(state: LedgerState, { ids, gpus }: AllocateRequest): CoreGpus | null {
  if (gpus === undefined) return null;
  const named = gpus ?? evenlyNamed(state, ids);
  const coresEach = ids.length / named.length;
  return Number.isInteger(coresEach) && coresEach <= CORES_PER_GPU ? { ok: true, gpus: named } : null;
}

/** The GPUs of which ids name parts of equal size; empty if they are of one GPU, whole, or not equal. */
function evenlyNamed(state: LedgerState, coreIds: readonly string[]): readonly Gpu[] {
  const counts = countByGpu(state, coreIds);
  const coresEach = coreIds.length / counts.size;
  const areParts = counts.size > 1 && coresEach < CORES_PER_GPU;
  if (!areParts || [...counts.values()].some((count) => count !== coresEach)) return [];
  return state.node.gpus.flatMap(({ gpu }) => (counts.has(gpu.uuid) ? [gpu] : []));
}

/** The MIG instances that ids of whole instances represent; null for other ids. No other GPU can replace them. */
function wholeInstances(state: LedgerState, coreIds: readonly string[]): CoreGpus | null {
  const uuids = new Set(coreIds.map((id) => state.node.ids.decode(id)?.gpuUuid));
  const named = slots(state, { coreIds: new Set(coreIds), memoryIds: new Set() }).filter(({ gpu }) =>
    uuids.has(gpu.uuid),
  );
  if (named.length === 0 || !named.every(({ gpu }) => isGivenWhole(state.node, gpu))) return null;
  const taken = named.find((slot) => !isWhole(slot) || !isOffered(state, slot.gpu.uuid, 'plugin'));
  if (taken === undefined && named.length * CORES_PER_GPU === coreIds.length)
    return { ok: true, gpus: named.map(({ gpu }) => gpu) };
  const reason = taken?.usable === false ? 'is unhealthy or excluded' : 'is in use';
  return refuse('nothing-fits', `MIG instance ${taken?.gpu.uuid ?? named[0]?.gpu.uuid ?? ''} ${reason}`);
}

/** How a container on these GPUs shares them. */
function wayOf([gpu]: readonly Gpu[]): Pick<Allocation, 'compute'> {
  return gpu?.compute === undefined ? {} : { compute: gpu.compute };
}

type CoreGpus = { readonly ok: true; readonly gpus: readonly Gpu[] } | RequestRefusal;

/**
 * The GPUs of core ids: the GPUs that the ids name if these are as many as the container gets, have room and are what
 * the pod's annotations allow; else GPUs that are placed by the number of ids.
 */
function gpusOfCores(
  state: LedgerState,
  coreIds: readonly string[],
  turn: readonly PendingContainer[],
  memoryIds: readonly string[],
): CoreGpus {
  const own = { coreIds: new Set(coreIds), memoryIds: new Set(memoryIds) };
  const free = pluginSlots(state, own, maySuspend(turn[0]));
  const cores = coreIds.length;
  const counts = countByGpu(state, coreIds);
  // The ids carry the decision: of containers that wait together, one that gets parts of so many GPUs.
  const asking = turn.find(({ selection }) => divisionOf(cores, selection).gpus === counts.size) ?? turn[0];
  const selection = asking?.selection ?? ANY_GPUS;
  const division = divisionOf(cores, selection);
  const offering = free.filter((slot) => counts.has(slot.gpu.uuid));
  const named = memoryIds.length > 0 ? gpuOfOpenMemory(state) : [];
  const hasNamed = named.every((index) => offering.some(({ gpu }) => gpu.index === index));
  const perGpu = division.coresEach;
  const room = offering.every(
    (slot) => slot.usable && counts.get(slot.gpu.uuid) === perGpu && slot.freeCores >= perGpu,
  );
  const memoryBytes = memoryIds.length * MEMORY_BLOCK_BYTES;
  const memoryFits = isDivided(division)
    ? offering.every((slot) => slot.freeMemoryBytes >= memoryBytes / division.gpus)
    : offering.reduce((sum, slot) => sum + slot.freeMemoryBytes, 0) >= memoryBytes;
  const gpus = offering.map(({ gpu }) => gpu);
  const isSelected =
    gpus.every((gpu) => allows(selection, gpu)) && new Set(gpus.map((gpu) => kindOf(selection, gpu))).size <= 1;
  if (room && memoryFits && hasNamed && isSelected && offering.length === division.gpus) return { ok: true, gpus };
  const placeOn = (among: readonly number[] | undefined, blocks: number) =>
    place(
      state.node.topology,
      free,
      { ...dividedRequest({ cores, memoryBlocks: blocks }, selection), selection },
      { mustInclude: named, among },
    );
  if (asking !== undefined && memoryIds.length === 0) {
    // Its memory comes with the next request: first the GPUs that the preferred ids name.
    const indexes = gpus.map(({ index }) => index);
    const planned = [indexes, undefined].map((among) => placeOn(among, asking.memoryBlocks)).find(({ ok }) => ok);
    if (planned?.ok === true) return planned;
  }
  const placed = placeOn(undefined, memoryIds.length);
  return placed.ok ? placed : refuse('nothing-fits', placed.reason);
}

/**
 * Divides ids among GPUs: an id goes to the GPU that it names if that is one of them, and otherwise to the GPU with the
 * most room left. Parts of several GPUs are of equal size.
 */
function partsOf(
  state: LedgerState,
  gpus: readonly Gpu[],
  coreIds: readonly string[],
  memoryIds: readonly string[],
): Part[] {
  const parts = gpus.map((gpu) => ({ gpu, coreIds: [] as string[], memoryIds: [] as string[] }));
  const corePerGpu = coreIds.length / Math.max(1, gpus.length);
  distribute(state, parts, coreIds, 'coreIds', () => corePerGpu);
  const areParts = gpus.length > 1 && corePerGpu < CORES_PER_GPU;
  const blocksPerGpu = areParts ? Math.ceil(memoryIds.length / gpus.length) : Infinity;
  distribute(state, parts, memoryIds, 'memoryIds', (gpu) => Math.min(blocksPerGpu, memoryBlocks(gpu.memoryBytes)));
  return parts.map((part) => ({ gpuUuid: part.gpu.uuid, coreIds: part.coreIds, memoryIds: part.memoryIds }));
}

type OpenPart = { gpu: Gpu; coreIds: string[]; memoryIds: string[] };

function distribute(
  state: LedgerState,
  parts: OpenPart[],
  ids: readonly string[],
  list: 'coreIds' | 'memoryIds',
  limit: (gpu: Gpu) => number,
): void {
  const unplaced: string[] = [];
  for (const id of ids) {
    const uuid = state.node.ids.decode(id)?.gpuUuid;
    const own = parts.find((part) => part.gpu.uuid === uuid && part[list].length < limit(part.gpu));
    if (own === undefined) unplaced.push(id);
    else own[list].push(id);
  }
  for (const id of unplaced) {
    const emptiest = parts.reduce((a, b) => (limit(b.gpu) - b[list].length > limit(a.gpu) - a[list].length ? b : a));
    emptiest[list].push(id);
  }
}

/** Adds memory ids to an allocation; ids that it has already are not added twice. */
function addMemory(state: LedgerState, allocation: Allocation, memoryIds: readonly string[]): Allocation {
  const held = new Set(memoryIdsOf(allocation));
  return setMemory(state, allocation, [...held, ...memoryIds.filter((id) => !held.has(id))]);
}

/** The allocation with exactly these memory ids. */
export function setMemory(state: LedgerState, allocation: Allocation, memoryIds: readonly string[]): Allocation {
  const gpus = state.node.gpus
    .filter(({ gpu }) => allocation.parts.some((part) => part.gpuUuid === gpu.uuid))
    .map(({ gpu }) => gpu);
  if (gpus.length < allocation.parts.length) return allocation;
  const memory = partsOf(state, gpus, coreIdsOf(allocation), memoryIds);
  const parts = allocation.parts.map((part) => ({
    ...part,
    memoryIds: memory.find((entry) => entry.gpuUuid === part.gpuUuid)?.memoryIds ?? [],
  }));
  return { ...allocation, parts };
}

/** A refusal if a GPU of the allocation has more memory allocated than it offers; else null. */
export function overbooked(state: LedgerState, allocation: Allocation): RequestRefusal | null {
  for (const part of allocation.parts) {
    const gpu = state.node.gpus.find((entry) => entry.gpu.uuid === part.gpuUuid)?.gpu;
    if (gpu === undefined) continue;
    const [real, factor] = [memoryBlocks(gpu.memoryBytes), factorOf(gpu, state.node.suspendFactor)];
    if (!isOverOffer(real, factor, heldOn(state, gpu.uuid).memoryBlocks)) continue;
    const own = { coreIds: new Set<string>(), memoryIds: new Set(part.memoryIds) };
    const free = roomFor(real, factor, heldOn(state, gpu.uuid, own).memoryBlocks, allocation.suspendable === true);
    const blocks = real - usedWithoutIds(state, gpu.uuid).memoryBlocks;
    return refuse(
      'nothing-fits',
      `asked for ${part.memoryIds.length} blocks of 256 MiB on GPU ${gpu.index}, where ${free} of ${blocks} are free`,
    );
  }
  return null;
}

/** The index of a GPU of the allocation that has more cores or memory allocated than it offers; null if none has. */
export function overOffered(state: LedgerState, { parts }: Allocation): number | null {
  const { node } = state;
  const over = node.gpus.find(({ gpu }) => {
    if (!parts.some(({ gpuUuid }) => gpuUuid === gpu.uuid)) return false;
    const [factor, held] = [factorOf(gpu, node.suspendFactor), heldOn(state, gpu.uuid)];
    return (
      isOverOffer(CORES_PER_GPU, factor, held.cores) ||
      isOverOffer(memoryBlocks(gpu.memoryBytes), factor, held.memoryBlocks)
    );
  });
  return over?.gpu.index ?? null;
}

export function withAllocation(state: LedgerState, allocation: Allocation): LedgerState {
  return { ...state, allocations: new Map(state.allocations).set(allocation.id, allocation) };
}

export function without(state: LedgerState, id: string): LedgerState {
  const allocations = new Map(state.allocations);
  allocations.delete(id);
  const open =
    state.open !== null && state.open.kind !== 'memory' && state.open.allocationId === id ? null : state.open;
  return { ...state, allocations, open };
}

/** The state without memory halves that share an id with `memoryIds`. */
export function withoutHalf(state: LedgerState, memoryIds: readonly string[]): LedgerState {
  if (memoryIds.length === 0) return state;
  const taken = new Set(memoryIds);
  const overlaps = (ids: readonly string[]) => ids.some((id) => taken.has(id));
  const open = state.open?.kind === 'memory' && overlaps(state.open.memoryIds) ? null : state.open;
  return { ...state, halves: state.halves.filter((half) => !overlaps(half.memoryIds)), open };
}
