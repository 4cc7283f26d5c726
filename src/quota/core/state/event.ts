import type { Key } from '../../../manifests/key.js';
import type { Code } from '../amounts/refusal.js';

/** An event of the engine. Times are milliseconds of the clock that the commands carry. */
export interface QuotaEvent {
  readonly type:
    | 'admitted'
    | 'denied'
    | 'released'
    | 'reserved'
    | 'confirmed'
    | 'reservationExpired'
    | 'groupCreated'
    | 'groupUpdated'
    | 'groupDeleted'
    | 'groupTerminating'
    | 'overQuota'
    | 'podStarted'
    | 'podStopped'
    | 'cashThreshold'
    | 'clockSkew'
    | 'grantAdded'
    | 'grantBegan'
    | 'grantEnded'
    | 'grantRefused'
    | 'loanAdded'
    | 'loanBegan'
    | 'loanReturned'
    | 'loanOverdue'
    | 'drift';
  readonly at: number;
  /** The revision of the state after the event. */
  readonly revision: number;
  readonly group: string;
  /** `refKey` of the workload, id of the pod, grant, loan or reservation. */
  readonly subject?: string;
  readonly code?: Code;
  /** The actor that the caller named. */
  readonly actor?: string;
  /** The reason as a sentence. */
  readonly reason?: string;
  /** The amounts of the event by key: the charges, or the usage at a threshold. */
  readonly amounts?: ReadonlyMap<Key, bigint>;
  /** For a changed group: `hard` before and after. */
  readonly before?: ReadonlyMap<Key, bigint>;
  readonly after?: ReadonlyMap<Key, bigint>;
  /** For cashThreshold: 80, 90 or 100 percent. */
  readonly percent?: number;
}
