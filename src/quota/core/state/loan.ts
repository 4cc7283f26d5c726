import type { Amount } from '../../../manifests/amount.js';
import type { Key } from '../../../manifests/key.js';

/** Quota that one child of a group temporarily lends to its sibling; immutable. */
export interface Loan {
  readonly id: string;
  readonly lender: string;
  readonly borrower: string;
  readonly validFrom: number;
  readonly until: number;
  /** Lent amounts that have not been returned. */
  readonly amounts: ReadonlyMap<Key, Amount>;
  readonly state: 'pending' | 'running' | 'overdue';
}
