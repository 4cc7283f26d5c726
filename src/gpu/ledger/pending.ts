import { checkRequest } from '../division.js';
import { ANY_GPUS, selectionKey, type GpuSelection } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import type { GpuSlot } from '../placement/slot.js';
import { isFraction, refuse, type ContainerRequest, type RequestRefusal } from '../request.js';
import { CORES_PER_GPU, memoryBlocks, type ResourceKind } from '../resources.js';

/** One request of the kubelet: a number of units of one resource. */
export interface ResourceRequest {
  readonly kind: ResourceKind;
  readonly size: number;
}

/** A container that waits for its GPU: from a pod that the API server binds to this node and that has not started. */
export interface PendingContainer extends ContainerRequest {
  readonly podUid: string;
  readonly container: string;
  /** GPU indexes that a scheduler extender predicted; empty without a prediction. */
  readonly hint: readonly number[];
  /** The UUIDs of the predicted GPUs, where the prediction has them; `withPresentHints` makes indexes of them. */
  readonly hintUuids?: readonly string[];
  /** Whether containers of its pod run after it and reuse its ids. */
  readonly isInit?: boolean;
  /** What its pod's annotations say about its GPUs; absent: any GPUs. */
  readonly selection?: GpuSelection;
  /** The error in its pod's annotations, for which it is refused; absent without one. */
  readonly brokenRule?: string;
  /** Whether its programs are 32-bit programs. */
  readonly compat32?: boolean;
}

/**
 * Oldest binding first, the containers of a pod in the kubelet's order; null if the node's pods are unknown (no API
 * server, or its cache is not synced yet).
 */
export type PendingContainers = readonly PendingContainer[] | null;

/** The containers with the present indexes of their predicted GPUs: the prediction may be older than the numbers. */
export function withPresentHints(
  gpus: readonly { readonly gpu: Gpu }[],
  pending: readonly PendingContainer[],
): readonly PendingContainer[] {
  return pending.map((container) => {
    const { hintUuids } = container;
    if (hintUuids === undefined) return container;
    return {
      ...container,
      hint: hintUuids.flatMap((uuid) => gpus.find(({ gpu }) => gpu.uuid === uuid)?.gpu.index ?? []),
    };
  });
}

/** Whether this container, which seems to ask, may be suspended; an unknown one must run. */
export function maySuspend(container: Pick<PendingContainer, 'selection'> | undefined): boolean {
  return container?.selection?.suspendable === true;
}

/** The waiting containers that ask for exactly this many units of the resource. */
export function matchingContainers(
  pending: PendingContainers,
  kind: ResourceKind,
  size: number,
): readonly PendingContainer[] {
  return (pending ?? []).filter((container) => (kind === 'core' ? container.cores : container.memoryBlocks) === size);
}

/** A refusal of a request that breaks a rule, independent of free capacity. */
export type BrokenRule = RequestRefusal & {
  /** The oldest pod that may have sent the request. The kubelet fails the whole pod and never repeats its request. */
  readonly podUid: string;
};

/**
 * The refusal if all containers break a rule: a part of a GPU without memory, memory without cores, amounts that cannot
 * be divided as asked, or a wrong annotation.
 */
export function brokenRule(known: readonly PendingContainer[]): BrokenRule | null {
  const [first] = known;
  const problems = known.map((container) =>
    container.brokenRule === undefined
      ? checkRequest(container, container.selection)
      : refuse('bad-annotation', container.brokenRule),
  );
  const [reason] = problems;
  if (first === undefined || reason === undefined || reason === null || problems.includes(null)) return null;
  return { ...reason, podUid: first.podUid };
}

/**
 * What a container that sends this request may want of both resources. For cores, the most memory comes first: the GPU
 * should have room for every container. For memory, the kind of cores (a part or whole GPUs) that the oldest container
 * requests comes first, and of each kind the largest; none where no container is known. `joined`: the memory that was
 * joined to the cores before, if it may belong to these.
 */
export function wantedAmounts(
  known: readonly PendingContainer[],
  { kind, size }: ResourceRequest,
  free: readonly GpuSlot[],
  joined: number,
): readonly ContainerRequest[] {
  if (kind === 'memory') {
    const valid = known.filter((container) => checkRequest(container, container.selection) === null);
    const cores = distinct(valid.map((container) => container.cores));
    const isPart = isFraction(cores[0] ?? 0);
    const rank = (each: number): number => Number(isFraction(each) === isPart);
    return cores.sort((a, b) => rank(b) - rank(a) || b - a).map((each) => ({ cores: each, memoryBlocks: size }));
  }
  const least = isFraction(size) ? 1 : 0;
  const blocks =
    known.length > 0
      ? distinct(known.map((container) => container.memoryBlocks)).sort((a, b) => b - a)
      : [...expectedMemory(free, size), ...(joined > least ? [joined] : []), least];
  return blocks.map((each) => ({ cores: size, memoryBlocks: each }));
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

function distinct(numbers: readonly number[]): number[] {
  return [...new Set(numbers)];
}

/** Whether a request for `cores` and one for `memoryBlocks` that follow each other may belong to one container. */
export function mayBelongTogether(pending: PendingContainers, cores: number, memoryBlocks: number): boolean {
  if (pending === null) return true;
  const sameCores = pending.filter((container) => container.cores === cores);
  const sameMemory = pending.filter((container) => container.memoryBlocks === memoryBlocks);
  // The pod of one of them is not known yet: requests that follow each other usually belong together.
  if (sameCores.length === 0 || sameMemory.length === 0) return true;
  return sameCores.some((container) => container.memoryBlocks === memoryBlocks);
}

/**
 * True when the waiting containers that ask for `size` units of `kind` ask for different amounts of the other resource
 * or for different GPUs, or when only some of the containers that may own the last answer (`halfSize` units of the
 * other resource) would ask for this request next.
 */
export function isAmbiguous(
  pending: readonly PendingContainer[],
  kind: ResourceKind,
  size: number,
  halfSize: number | null,
): boolean {
  const mine = (container: PendingContainer): number => (kind === 'core' ? container.cores : container.memoryBlocks);
  const other = (container: PendingContainer): number => (kind === 'core' ? container.memoryBlocks : container.cores);
  const candidates = pending.filter((container) => mine(container) === size);
  if (new Set(candidates.map(other)).size > 1) return true;
  if (new Set(candidates.map(({ selection = ANY_GPUS }) => selectionKey(selection))).size > 1) return true;
  if (halfSize === null) return false;
  const owners = pending.filter((container) => other(container) === halfSize);
  const followed = owners.filter((container) => mine(container) === size);
  return followed.length > 0 && followed.length < owners.length;
}
