import type { Group } from './group.js';
import type { Loan } from './loan.js';
import type { Pod } from './pod.js';
import type { Reservation } from './reservation.js';
import type { Workload } from './workload.js';

/**
 * One record of the state and its new value, null where it is gone. Records are absolute: applied in order, twice, or
 * on top of newer ones that are then repeated, they lead to the same state. Counters are not among them: they follow
 * from the records.
 */
export type Change =
  | { readonly kind: 'group'; readonly key: string; readonly group: string; readonly value: Group | null }
  | { readonly kind: 'workload'; readonly key: string; readonly group: string; readonly value: Workload | null }
  | { readonly kind: 'pod'; readonly key: string; readonly group: string; readonly value: Pod | null }
  | { readonly kind: 'reservation'; readonly key: string; readonly group: string; readonly value: Reservation | null }
  | { readonly kind: 'loan'; readonly key: string; readonly group: string; readonly value: Loan | null };
