import type { ResourceKind } from '../resources.js';

/** What a container requests. */
export interface Amounts {
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** The largest amount of each resource. */
export function peakOf(requests: readonly Amounts[]): Amounts {
  return {
    cores: Math.max(0, ...requests.map(({ cores }) => cores)),
    memoryBlocks: Math.max(0, ...requests.map(({ memoryBlocks }) => memoryBlocks)),
  };
}

/**
 * The peak of each init container of a pod: the most that it or a container that reuses its ids requests. The kubelet
 * gives the ids of an init container to the init containers after it, and then to the first container.
 */
export function initPeaks(initContainers: readonly Amounts[], containers: readonly Amounts[]): readonly Amounts[] {
  const first = containers.filter(({ cores, memoryBlocks }) => cores + memoryBlocks > 0).slice(0, 1);
  return initContainers.map((_, index) => peakOf([...initContainers.slice(index), ...first]));
}

/** A container that waits for its GPU: from a pod that the API server binds to this node and that has not started. */
export interface PendingContainer {
  readonly podUid: string;
  readonly container: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  /** GPU indexes that a scheduler extender predicted; empty without a prediction. */
  readonly hint: readonly number[];
  /** Only of an init container: its GPUs need room for this (`initPeaks`). */
  readonly peak?: Amounts | undefined;
  /** Whether its pod requires whole GPUs of one model and memory. */
  readonly equalGpus?: boolean;
  /** Whether its programs are 32-bit programs. */
  readonly compat32?: boolean;
}

/** Oldest binding first; null if the node's pods are unknown (no API server, or its cache is not synced yet). */
export type PendingContainers = readonly PendingContainer[] | null;

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
 * True when the waiting containers that ask for `size` units of `kind` ask for different amounts of the other resource,
 * or when only some of the containers that may own the last answer (`halfSize` units of the other resource) would ask
 * for this request next.
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
  if (halfSize === null) return false;
  const owners = pending.filter((container) => other(container) === halfSize);
  const followed = owners.filter((container) => mine(container) === size);
  return followed.length > 0 && followed.length < owners.length;
}
