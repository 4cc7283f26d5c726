import type { Key } from './key.js';
import type { Code } from './refusal.js';

/** What happened. Times are milliseconds of the clock that the commands carry. */
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
  /** Of the state after it. */
  readonly revision: number;
  readonly group: string;
  /** `refKey` of the workload, id of the pod, grant, loan or reservation. */
  readonly subject?: string;
  readonly code?: Code;
  /** Who asked, as the caller said it. */
  readonly actor?: string;
  /** Why, in words. */
  readonly reason?: string;
  /** Amounts by key that the event is about: what was charged, or the use at a threshold. */
  readonly amounts?: ReadonlyMap<Key, bigint>;
  /** Of a group's change: `hard` before and after. */
  readonly before?: ReadonlyMap<Key, bigint>;
  readonly after?: ReadonlyMap<Key, bigint>;
  /** Of cashThreshold: 80, 90 or 100 percent. */
  readonly percent?: number;
}
