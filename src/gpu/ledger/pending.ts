import type { ResourceKind } from '../resources.js';

/** A container that waits for its GPU: what the API server says of the pods of this node that have not started yet. */
export interface PendingContainer {
  readonly podUid: string;
  readonly container: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  /** GPU indexes that a scheduler extender predicted, empty where none did. */
  readonly hint: readonly number[];
  /** Its pod requires that several whole GPUs are of one model and memory. */
  readonly equalGpus?: boolean;
  /** Its programs are of 32 bits. */
  readonly compat32?: boolean;
}

/** Oldest decision first; null where nothing is known of pods (no API server, or its cache is not filled yet). */
export type PendingContainers = readonly PendingContainer[] | null;

/** May a request for `cores` and one for `memoryBlocks` that follow each other belong to one container? */
export function mayBelongTogether(pending: PendingContainers, cores: number, memoryBlocks: number): boolean {
  if (pending === null) return true;
  const sameCores = pending.filter((container) => container.cores === cores);
  const sameMemory = pending.filter((container) => container.memoryBlocks === memoryBlocks);
  // One of them is of a pod that is not known yet: what follows each other usually belongs together.
  if (sameCores.length === 0 || sameMemory.length === 0) return true;
  return sameCores.some((container) => container.memoryBlocks === memoryBlocks);
}

/**
 * True when the waiting containers that ask for `size` units of `kind` differ in what they ask for of the other
 * resource, or when some of those that may own the half answered before (`halfSize` units of the other one) would
 * follow it with this request and some would not.
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
