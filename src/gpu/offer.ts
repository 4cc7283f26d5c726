/**
 * What a GPU offers. Its real capacity is for all containers; a node with a suspend factor offers a multiple of it to
 * containers that may be suspended, of which only so many run at a time as the real GPU has room for.
 *
 * Of each resource, cores and memory: the sum of all containers that must run, and the largest suspendable one beside
 * them, fit into the real GPU, so that every container can run at some time; the sum of all is at most the offer.
 */
import type { Gpu } from './gpu.js';
import { isInstance } from './mig.js';

/** What containers hold of one resource of one GPU. */
export interface HeldAmount {
  /** Of the containers that must run all the time. */
  readonly running: number;
  /** Of the suspendable containers, in sum. */
  readonly suspendable: number;
  /** Of the suspendable container that holds most. */
  readonly largest: number;
}

/**
 * How many times its real capacity a GPU offers. MIG instances, and GPUs whose multiprocessors are shared, offer what
 * they have: their containers cannot be suspended.
 */
export function factorOf(gpu: Gpu, suspendFactor = 1): number {
  return isInstance(gpu) || gpu.compute === 'sm' ? 1 : suspendFactor;
}

/** What one more container can get of a resource, of which the GPU has `real`. Never below 0. */
export function roomFor(
  real: number,
  factor: number,
  { running, suspendable, largest }: HeldAmount,
  isSuspendable: boolean,
): number {
  const offered = factor * real - running - suspendable;
  return Math.max(0, Math.min(offered, real - running - (isSuspendable ? 0 : largest)));
}

/** Whether containers hold more of a resource than the GPU offers. */
export function isOverOffer(real: number, factor: number, { running, suspendable, largest }: HeldAmount): boolean {
  return running + largest > real || running + suspendable > factor * real;
}
