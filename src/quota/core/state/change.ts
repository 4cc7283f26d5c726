import type { Group } from './group.js';
import type { Loan } from './loan.js';
import type { Pod } from './pod.js';
import type { Reservation } from './reservation.js';
import type { Workload } from './workload.js';

/**
 * A record of the state with its new value; null for a deleted record. Records are absolute: applying them in order,
 * twice, or again after newer ones gives the same state. Counters are not recorded, because they follow from the
 * records.
 */
export type Change =
  | { readonly kind: 'group'; readonly key: string; readonly group: string; readonly value: Group | null }
  | { readonly kind: 'workload'; readonly key: string; readonly group: string; readonly value: Workload | null }
  | { readonly kind: 'pod'; readonly key: string; readonly group: string; readonly value: Pod | null }
  | { readonly kind: 'reservation'; readonly key: string; readonly group: string; readonly value: Reservation | null }
  | { readonly kind: 'loan'; readonly key: string; readonly group: string; readonly value: Loan | null };
