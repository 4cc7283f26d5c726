/**
 * Pairing: the waiting containers that a request of the kubelet may belong to, and the other resource that each of them
 * requests. The kubelet requests cores and memory in separate calls, and names no pod.
 */
import type { ResourceKind } from '../resources.js';
import { checkCores, checkPair, isFraction, type Refusal } from '../request.js';
import { coreIdsOf, memoryIdsOf, type Allocation } from './allocation.js';
import { mayBelongTogether, type PendingContainer, type PendingContainers } from './pending.js';
import { ownersOf, type LedgerState } from './state.js';

/** A refusal of a request that breaks a rule, independent of free capacity. */
export type BrokenRule = Refusal & {
  /** The oldest pod that may have sent the request. The kubelet fails the whole pod and never repeats its request. */
  readonly podUid: string;
};

/** The memory ids that wait for their cores, if this request for cores may belong to them. */
export function openMemory(state: LedgerState, cores: number, pending: PendingContainers): readonly string[] | null {
  if (state.open?.kind !== 'memory') return null;
  return mayBelongTogether(pending, cores, state.open.memoryIds.length) ? state.open.memoryIds : null;
}

/** The GPU (index) that the answer for the waiting memory ids named, if it named one: their cores have to be there. */
export function gpuOfOpenMemory({ open, node }: LedgerState): readonly number[] {
  const uuid = open?.kind === 'memory' ? open.gpuUuid : undefined;
  return node.gpus.filter(({ gpu }) => gpu.uuid === uuid).map(({ gpu }) => gpu.index);
}

export interface OpenCores {
  readonly allocation: Allocation;
  readonly cores: number;
  readonly gpuUuids: readonly string[];
  /** Whether these cores may have their memory already, or their pod may be over. */
  readonly isUnsure: boolean;
}

/** The allocation that waits for its memory, if this request for memory may belong to it. */
export function openCores(state: LedgerState, memoryBlocks: number, pending: PendingContainers): OpenCores | null {
  if (state.open?.kind !== 'core') return null;
  const allocation = state.allocations.get(state.open.allocationId);
  if (allocation === undefined) return null;
  const cores = allocation.parts.reduce((sum, part) => sum + part.coreIds.length, 0);
  if (!mayBelongTogether(pending, cores, memoryBlocks)) return null;
  const { isUnsure = false } = state.open;
  return { allocation, cores, gpuUuids: allocation.parts.map((part) => part.gpuUuid), isUnsure };
}

/** The waiting containers that ask for exactly this many units of the resource. */
export function matchingContainers(
  pending: PendingContainers,
  kind: ResourceKind,
  size: number,
): readonly PendingContainer[] {
  return (pending ?? []).filter((container) => (kind === 'core' ? container.cores : container.memoryBlocks) === size);
}

/** Refuses a request that is invalid for every candidate: a part of a GPU without memory, or memory without cores. */
export function checkCandidates(candidates: readonly PendingContainer[]): BrokenRule | null {
  const [first] = candidates;
  if (first === undefined) return null;
  const problems = candidates.map((candidate) => checkPair(candidate));
  const [reason] = problems;
  return reason !== null && reason !== undefined && problems.every((problem) => problem !== null)
    ? { ...reason, podUid: first.podUid }
    : null;
}

/** Amounts of memory that may follow these cores, largest first: the GPU should have room for every candidate. */
export function plausibleMemory(candidates: readonly PendingContainer[], cores: number, joined: number): number[] {
  const known = distinct(candidates.map((candidate) => candidate.memoryBlocks)).sort((a, b) => b - a);
  if (known.length > 0) return known;
  const least = isFraction(cores) ? 1 : 0;
  return joined > least ? [joined, least] : [least];
}

/**
 * Numbers of cores that may follow this memory: first of the kind (part or whole GPUs) that the oldest candidate
 * requests, and of each kind the largest.
 */
export function plausibleCores(candidates: readonly PendingContainer[]): number[] {
  const known = distinct(
    candidates.map((candidate) => candidate.cores).filter((cores) => checkCores(cores, true) === null),
  );
  const oldest = isFraction(known[0] ?? 0);
  return known.sort((a, b) => Number(isFraction(b) === oldest) - Number(isFraction(a) === oldest) || b - a);
}

/**
 * The GPU indexes that the extender predicted for the oldest candidate without an answer. A candidate that was answered
 * still looks pending until it starts, so answers of this size without a known owner are subtracted: each stands for
 * the oldest candidate with that prediction or, if it went to other GPUs, for the oldest candidate that is left.
 */
export function predictedGpus(
  state: LedgerState,
  { kind, size }: { readonly kind: ResourceKind; readonly size: number },
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

/** Answers of `size` ids of that kind whose owner is unknown. */
function unownedAnswers(state: LedgerState, kind: ResourceKind, size: number): (readonly string[])[] {
  const unowned = [...state.allocations.values()].filter(({ owners }) => owners.length === 0);
  const held = unowned.map((allocation) => (kind === 'core' ? coreIdsOf(allocation) : memoryIdsOf(allocation)));
  const halves = kind === 'memory' ? state.halves.map(({ memoryIds }) => memoryIds) : [];
  return [...held, ...halves].filter((ids) => ids.length === size);
}

function distinct(numbers: readonly number[]): number[] {
  return [...new Set(numbers)];
}
