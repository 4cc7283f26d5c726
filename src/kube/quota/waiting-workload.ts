import type { Quantities } from '../../manifests/quantities.js';
import { readAmounts, writeAmounts } from '../amounts.js';
import { record, time, timestamp } from '../json.js';

/** A workload that waits for quota, in `status.waiting` of its group, by `refKey`. */
export interface WaitingWorkload {
  /** What it would add to the usage of the group. */
  readonly amounts: Quantities;
  /** Priority of its pods; absent where no group of its cohort preempts. */
  readonly priority?: number;
  /** The first refusal, or when the arbitrator stopped it; milliseconds. */
  readonly since: number;
  /** When its client tried last, as far as it was recorded; milliseconds. */
  readonly asked: number;
  /** `Kept`: the arbitrator keeps room for it. `Next`: it comes before other requests when room becomes free. */
  readonly room: 'Kept' | 'Next' | null;
  /** Set for a workload that the arbitrator stopped and starts again. */
  readonly stopped: {
    /** The replicas that it had; absent for a workload that is suspended. */
    readonly replicas?: number;
  } | null;
}

/** Reads `status.waiting`; entries that cannot be read are left out. */
export function readWaiting(waiting: unknown): ReadonlyMap<string, WaitingWorkload> {
  const read = new Map<string, WaitingWorkload>();
  for (const [key, entry] of Object.entries(record(waiting))) {
    const { amounts: written, since: first, asked: last, room, stopped, priority } = record(entry);
    const { amounts, problems } = readAmounts(written, 'up');
    const [since, asked] = [time(first), time(last)];
    if (problems.length > 0 || since === null || asked === null) continue;
    const { replicas } = record(stopped);
    read.set(key, {
      amounts,
      ...(typeof priority === 'number' ? { priority } : {}),
      since,
      asked,
      room: room === 'Kept' || room === 'Next' ? room : null,
      stopped: stopped === undefined ? null : typeof replicas === 'number' ? { replicas } : {},
    });
  }
  return read;
}

/** A change of an entry; `room` and `stopped` stay if they are absent. */
export type WaitingChange = Pick<WaitingWorkload, 'amounts' | 'since' | 'asked'> & Partial<WaitingWorkload>;

/** The entry of a workload for a merge patch. */
export function writeWaiting({ amounts, priority, since, asked, room, stopped }: WaitingChange): object {
  return { amounts: writeAmounts(amounts), priority, since: timestamp(since), asked: timestamp(asked), room, stopped };
}

/** The most workloads of one group that are recorded as waiting. */
export const MAX_WAITING = 64;
