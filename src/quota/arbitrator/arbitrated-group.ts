import type { Quantities } from '../../manifests/quantities.js';
import type { RunningPod } from './running-pod.js';
import type { WaitingPod } from './waiting-pod.js';

/**
 * Which of its refused workloads a group gets room for by evictions: none, those within its guaranteed part, or also
 * those within its fair share of what other groups lend.
 */
export type Reclaim = 'Never' | 'Guaranteed' | 'FairShare';

/** Whether waiting workloads of a group take the room of the group's own workloads of lower priority. */
export type Preemption = 'Never' | 'LowerPriority';

/** A group of the quota engine, by keys that count (without cash). */
export interface ArbitratedGroup {
  readonly name: string;
  /** Empty for a root. */
  readonly parent: string;
  /** Whether it lends to its parent's pool and borrows from it. */
  readonly isElastic: boolean;
  readonly hard: Quantities;
  /** The most that it lends and borrows; no limit for a missing key. */
  readonly lend?: Quantities | undefined;
  readonly borrow?: Quantities | undefined;
  /** Its part of what is lent, relative to its siblings. Default 1. */
  readonly weight?: number | undefined;
  /** Hours that it had beyond its guaranteed part, by key; with them, it gets the less the more it had. */
  readonly borrowedHours?: Quantities | undefined;
  /** Default: Never. */
  readonly reclaim?: Reclaim | undefined;
  /** Whether its waiting workloads take the room of its own workloads of lower priority. Default: Never. */
  readonly preemption?: Preemption | undefined;
}

/** A workload that a group is charged for; `consumer` is the group. */
export type ChargedWorkload = Omit<RunningPod, 'node' | 'place' | 'isBeyondQuota'>;

/** A workload that was refused and whose client retries; `consumer` is the group, `uses` what it would add. */
export type RefusedWorkload = Pick<WaitingPod, 'id' | 'consumer' | 'uses'> & {
  /** The first refusal, milliseconds. */
  readonly since: number;
  /** Default 0. */
  readonly priority?: number | undefined;
};
