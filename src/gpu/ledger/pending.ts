import type { ResourceKind } from '../resources.js';

/** A container that waits for its GPU: from a pod that the API server binds to this node and that has not started. */
export interface PendingContainer {
  readonly podUid: string;
  readonly container: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  /** GPU indexes that a scheduler extender predicted; empty without a prediction. */
  readonly hint: readonly number[];
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
