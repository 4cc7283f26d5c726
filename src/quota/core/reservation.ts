import type { Workload } from './workload.js';

/** A demand that is admitted and not confirmed. */
export interface Candidate {
  /** Name of the operation: the same operation again is no second reservation. */
  readonly id: string;
  readonly workload: Workload;
  readonly expiresAt: number;
}

/**
 * What is held for a workload in a group between its admission and the moment its object is seen: as much as the
 * largest of the candidates asks for beyond what the workload is charged already. Never changed: replaced.
 */
export interface Reservation {
  /** `reservationKey`. */
  readonly key: string;
  readonly workload: string;
  readonly group: string;
  readonly candidates: readonly Candidate[];
}

/** One reservation for a workload in a group. */
export function reservationKey(workload: string, group: string): string {
  return `${group}@${workload}`;
}
