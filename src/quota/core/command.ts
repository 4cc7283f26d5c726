import type { Demand, Resources } from './admission/demand.js';
import type { GrantSpec } from './loans/grants.js';
import type { GroupSpec } from './state/group-spec.js';
import type { GroupUpdate } from './groups/group-update.js';
import type { LoanSpec } from './loans/loans.js';
import type { Observation } from './workloads/observe.js';
import type { TransferSpec } from './loans/transfer.js';
import type { Types } from './amounts/type-family.js';
import type { WorkloadRef } from './state/workload.js';

/** The caller, for events and the audit. */
interface WithActor {
  readonly actor?: string | undefined;
}

/** A pod that was scheduled or resized. */
export interface PodStart {
  readonly pod: string;
  readonly workload: WorkloadRef;
  /** Time of scheduling or resize, in milliseconds; by default the time of the command. */
  readonly since?: number | undefined;
  /** Name of the pod set in the workload; by default the first. */
  readonly podSet?: string | undefined;
  /** Group and amounts; required if they differ from the pod set, or if the workload is not charged any more. */
  readonly group?: string | undefined;
  readonly types?: Types | undefined;
  readonly requests?: Resources | undefined;
  readonly limits?: Resources | undefined;
}

/** A pod that succeeded, failed or was deleted. */
export interface PodStop {
  readonly pod: string;
  /** Time of the end, in milliseconds; by default the time of the command. */
  readonly end?: number | undefined;
  /**
   * The group of a pod whose start is not known yet: engines that share a store then find the stop in that group's
   * records.
   */
  readonly group?: string | undefined;
  /** The pod may have run until this time: usage after `end` is counted as uncertain. */
  readonly uncertainUntil?: number | undefined;
  /** The object of the pod still exists: see podForgotten. */
  readonly retain?: boolean | undefined;
}

/** The commands of the engine. Times are milliseconds since 1970. */
export type Command =
  | ({ readonly type: 'createGroup' } & GroupSpec & WithActor)
  | ({ readonly type: 'updateGroup' } & GroupUpdate & WithActor)
  | ({ readonly type: 'deleteGroup'; readonly name: string; readonly force?: boolean | undefined } & WithActor)
  | ({ readonly type: 'terminateGroup'; readonly name: string } & WithActor)
  | ({ readonly type: 'admit'; readonly dryRun?: boolean | undefined } & Demand & WithActor)
  | ({ readonly type: 'reserve'; readonly ttlMs: number; readonly operation?: string | undefined } & Demand & WithActor)
  | ({ readonly type: 'confirm'; readonly reservation: string } & WithActor)
  | ({
      readonly type: 'cancel';
      readonly reservation: string;
      /** Cancels only a reservation that expires at this time or earlier. */
      readonly expiresBy?: number | undefined;
    } & WithActor)
  /** An object was observed, or its deletion was observed: see observe.ts. */
  | ({ readonly type: 'observe' } & Observation & WithActor)
  | ({ readonly type: 'release'; readonly workload: WorkloadRef } & WithActor)
  | ({
      readonly type: 'scale';
      readonly workload: WorkloadRef;
      readonly replicas: number;
      readonly podSet?: string | undefined;
      readonly dryRun?: boolean | undefined;
    } & WithActor)
  | ({
      readonly type: 'checkHpa';
      readonly workload: WorkloadRef;
      readonly maxReplicas: number;
      readonly mode?: 'advisory' | 'reserve' | undefined;
      readonly dryRun?: boolean | undefined;
    } & WithActor)
  | ({ readonly type: 'podStarted' } & PodStart & WithActor)
  | ({ readonly type: 'podStopped' } & PodStop & WithActor)
  /** The object of a stopped pod was deleted: only late events can still arrive. */
  | ({ readonly type: 'podForgotten'; readonly pod: string } & WithActor)
  | ({ readonly type: 'grant' } & GrantSpec & WithActor)
  | ({ readonly type: 'loan' } & LoanSpec & WithActor)
  | ({ readonly type: 'transfer' } & TransferSpec & WithActor)
  /** Advances the time: everything that is due until then happens, and is announced. */
  | ({ readonly type: 'tick' } & WithActor);
