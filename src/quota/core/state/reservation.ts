import type { Workload } from './workload.js';

/** An admitted demand that is not confirmed. */
export interface Candidate {
  /** Name of the operation; repeating it makes no second reservation. */
  readonly id: string;
  readonly workload: Workload;
  readonly expiresAt: number;
}

/**
 * The reservation of a workload in a group, from its admission until its object is observed. It reserves the amount
 * that the largest candidate needs beyond the workload's present charge. Immutable.
 */
export interface Reservation {
  /** Key by `reservationKey`. */
  readonly key: string;
  readonly workload: string;
  readonly group: string;
  readonly candidates: readonly Candidate[];
}

export function reservationKey(workload: string, group: string): string {
  return `${group}@${workload}`;
}
