import type { Amount } from './amount.js';
import type { Key } from './key.js';

/** Quota that one child of a group has for a time in place of its sibling. Never changed: replaced. */
export interface Loan {
  readonly id: string;
  readonly lender: string;
  readonly borrower: string;
  readonly validFrom: number;
  readonly until: number;
  /** What is lent and not returned. */
  readonly amounts: ReadonlyMap<Key, Amount>;
  readonly state: 'pending' | 'running' | 'overdue';
}
