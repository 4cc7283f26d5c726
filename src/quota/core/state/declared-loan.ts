import type { Key } from '../../../manifests/key.js';
import type { Quantity } from '../../../manifests/quantity.js';
import type { Refusal } from '../amounts/refusal.js';
import { readMoment, type Moment } from '../amounts/time.js';

/** A loan of quota to a sibling, in the specification of the lender. */
export interface GroupLoan {
  /** Unique within the group. */
  readonly name: string;
  /** Name of the borrowing sibling. */
  readonly to: string;
  readonly amounts: Readonly<Record<Key, Quantity>>;
  /** Beginning; by default at once. */
  readonly from?: Moment | undefined;
  /** End of the loan. */
  readonly until: Moment;
}

/** A parsed loan. */
export interface DeclaredLoan {
  readonly name: string;
  readonly borrower: string;
  readonly amounts: GroupLoan['amounts'];
  readonly validFrom: number | undefined;
  readonly until: number;
}

export type ReadLoans = { readonly ok: true; readonly loans: readonly DeclaredLoan[] } | Refusal;

const MAX_LOANS = 64;

/** Reads the loans of a specification. */
export function readLoans(loans: readonly GroupLoan[]): ReadLoans {
  const refuse = (code: Refusal['code'], reason: string): Refusal => ({ ok: false, code, reason });
  if (!Array.isArray(loans)) return refuse('InvalidCommand', 'loans: expected a list');
  if (loans.length > MAX_LOANS) return refuse('InvalidQuantity', `more than ${MAX_LOANS} loans`);
  const read: DeclaredLoan[] = [];
  for (const { name, to, amounts, from, until } of loans as readonly GroupLoan[]) {
    if (typeof name !== 'string' || !/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name))
      return refuse('InvalidName', `"${String(name).slice(0, 80)}" is not a valid name of a loan`);
    if (read.some((other) => other.name === name)) return refuse('LoanExists', `loan ${name} is declared twice`);
    if (typeof to !== 'string') return refuse('InvalidName', `loan ${name}: to: expected the name of a group`);
    const validFrom = from === undefined ? undefined : readMoment(from);
    const end = readMoment(until);
    if (Number.isNaN(validFrom) || Number.isNaN(end))
      return refuse('InvalidTime', `loan ${name}: from and until: expected times such as 2026-03-02T08:00:00Z`);
    read.push({ name, borrower: to, amounts, validFrom, until: end });
  }
  return { ok: true, loans: read };
}
