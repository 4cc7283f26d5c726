import { minOf, minus, maxOf, type Amount } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import type { Hard } from '../state/group-spec.js';
import type { Group } from '../state/group.js';
import { cashTarget, type Key } from '../../../manifests/key.js';
import type { Loan } from '../state/loan.js';
import { restructure } from '../admission/cohort.js';
import { readQuantity } from '../../../manifests/quantity.js';
import type { QuotaState } from '../state/state.js';

/** A temporary loan from one group to its sibling. */
export interface LoanSpec {
  readonly id: string;
  readonly lender: string;
  readonly borrower: string;
  readonly amounts: Hard;
  /** Default: now. */
  readonly validFrom?: number | undefined;
  readonly until: number;
}

/**
 * Lends quota from one child of a group to another for a limited time. At the end, the quota returns automatically.
 * Usage that remains makes the borrower over quota and blocks its growth; quota of its children stays until they
 * shrink. Nothing is evicted.
 */
export function addLoan(state: QuotaState, spec: LoanSpec): Decision {
  const [lender, borrower] = [state.group(spec.lender), state.group(spec.borrower)];
  if (lender === undefined || borrower === undefined) {
    return refusal(
      state,
      'GroupNotFound',
      `there is no group ${(lender === undefined ? spec.lender : spec.borrower).slice(0, 80)}`,
    );
  }
  if (!/^[A-Za-z0-9._/@:-]{1,128}$/.test(spec.id))
    return refusal(state, 'InvalidName', `"${spec.id.slice(0, 80)}" is not a valid id of a loan`);
  if (state.loans.has(spec.id)) return refusal(state, 'LoanExists', `loan ${spec.id} already exists`);
  if (lender === borrower || lender.parent !== borrower.parent)
    return refusal(state, 'LoanRefused', `${lender.name} and ${borrower.name} are not siblings`);
  const validFrom = Math.max(spec.validFrom ?? state.now, state.now);
  if (!Number.isSafeInteger(validFrom) || !Number.isSafeInteger(spec.until) || spec.until <= validFrom) {
    return refusal(state, 'InvalidTime', `invalid time of a loan: from ${validFrom} to ${spec.until}`);
  }
  const amounts = new Map<Key, Amount>();
  for (const [key, quantity] of Object.entries(spec.amounts)) {
    if (cashTarget(key) !== null) return refusal(state, 'LoanRefused', `${key}: budgets cannot be lent; use a grant`);
    if (!lender.layout.slots.has(key) || !borrower.layout.slots.has(key))
      return refusal(state, 'UnknownKey', `${key.slice(0, 80)} is not limited by both groups`);
    const read = readQuantity(key, quantity, 'down');
    if (!read.ok || read.amount <= 0)
      return refusal(state, 'InvalidQuantity', `invalid amount of a loan: ${key}=${String(quantity).slice(0, 64)}`);
    amounts.set(key, read.amount);
  }
  if (amounts.size === 0) return refusal(state, 'InvalidQuantity', 'a loan needs at least one amount');
  const loan: Loan = {
    id: spec.id,
    lender: lender.name,
    borrower: borrower.name,
    validFrom,
    until: spec.until,
    amounts,
    state: 'pending',
  };
  if (validFrom <= state.now) return begin(state, loan);
  state.revision++;
  state.putLoan(loan.id, loan);
  state.timers.push({ at: validFrom, kind: 'loanBegins', subject: loan.id, group: borrower.name });
  state.emit({ type: 'loanAdded', group: borrower.name, subject: loan.id, amounts: bigints(amounts) });
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [borrower.name, lender.name] });
}

/** Starts a due loan; it ends without effect if the lender needs the quota itself. */
export function loanBegins(state: QuotaState, id: string): void {
  const loan = state.loans.get(id);
  if (loan === undefined || loan.state !== 'pending' || loan.validFrom > state.now) return;
  const decision = begin(state, loan);
  if (decision.allowed) return;
  state.revision++;
  state.putLoan(id, null);
  state.emit({ type: 'denied', group: loan.borrower, subject: id, code: decision.code, reason: decision.message });
}

/** Ends a due loan and returns as much of it as possible. */
export function loanEnds(state: QuotaState, id: string): void {
  const loan = state.loans.get(id);
  if (loan === undefined || loan.state === 'pending' || loan.until > state.now) return;
  giveBack(state, loan);
}

/** Tries again to return overdue loans of `borrower`, whose children have changed. */
export function retryOverdueLoans(state: QuotaState, borrower: string): void {
  if (state.loans.size === 0) return;
  for (const loan of loansOf(state, borrower))
    if (loan.state === 'overdue' && loan.borrower === borrower) giveBack(state, loan);
}

/** Ends a loan early and returns as much of it as possible. */
export function endLoan(state: QuotaState, id: string): void {
  const loan = state.loans.get(id);
  if (loan === undefined) return;
  if (loan.state !== 'pending') return giveBack(state, loan);
  state.revision++;
  state.putLoan(id, null);
}

/** Ends the loans of a deleted group as far as possible. */
export function endLoansOf(state: QuotaState, name: string): void {
  if (state.loans.size === 0) return;
  for (const loan of loansOf(state, name)) {
    if (loan.state !== 'pending') giveBack(state, loan);
    if (state.loans.has(loan.id)) state.putLoan(loan.id, null);
  }
}

function loansOf(state: QuotaState, group: string): readonly Loan[] {
  return [...state.loans.entries()]
    .map(([, loan]) => loan)
    .filter((loan) => loan.borrower === group || loan.lender === group);
}

function begin(state: QuotaState, loan: Loan): Decision {
  const [found, other] = [state.group(loan.lender), state.group(loan.borrower)];
  if (found === undefined || other === undefined)
    return refusal(state, 'GroupNotFound', `a group of loan ${loan.id} does not exist any more`);
  for (const [key, amount] of loan.amounts) {
    const slot = found.layout.slots.get(key);
    if (slot === undefined || !other.layout.slots.has(key))
      return refusal(state, 'UnknownKey', `${key} is not limited by both groups`);
    const used = found.amounts.totalUsed(slot);
    if (minus(found.amounts.hard(slot), amount) < used)
      return refusal(state, 'LoanRefused', `group ${found.name} needs its ${key} itself`);
  }
  state.revision++;
  const [lender, borrower] = [state.own(found), state.own(other)];
  transfer(state, lender, borrower, loan.amounts);
  state.putLoan(loan.id, { ...loan, state: 'running' });
  state.timers.push({ at: loan.until, kind: 'loanEnds', subject: loan.id, group: borrower.name });
  state.emit({ type: 'loanBegan', group: borrower.name, subject: loan.id, amounts: bigints(loan.amounts) });
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [borrower.name, lender.name] });
}

function giveBack(state: QuotaState, loan: Loan): void {
  const [found, other] = [state.group(loan.lender), state.group(loan.borrower)];
  if (found === undefined || other === undefined) return;
  state.revision++;
  const [lender, borrower] = [state.own(found), state.own(other)];
  const returned = new Map<Key, Amount>();
  const owed = new Map<Key, Amount>();
  for (const [key, amount] of loan.amounts) {
    const slot = borrower.layout.slots.get(key);
    // A key that the lender or borrower no longer limits is not returned.
    if (slot === undefined || !lender.layout.slots.has(key)) continue;
    const free = maxOf(0, minus(borrower.amounts.hard(slot), borrower.amounts.childSum(slot)));
    const gives = minOf(amount, free);
    if (gives > 0) returned.set(key, gives);
    if (gives < amount) owed.set(key, minus(amount, gives));
  }
  transfer(state, borrower, lender, returned);
  state.putLoan(loan.id, owed.size === 0 ? null : { ...loan, amounts: owed, state: 'overdue' });
  state.emit({
    type: owed.size === 0 ? 'loanReturned' : 'loanOverdue',
    group: borrower.name,
    subject: loan.id,
    amounts: bigints(returned),
  });
  const over = borrower.layout.keys.filter((_, slot) => borrower.amounts.totalUsed(slot) > borrower.amounts.hard(slot));
  if (over.length > 0) state.emit({ type: 'overQuota', group: borrower.name, reason: over.join(', ') });
  // The lender's quota has grown, so that it may return its own loans.
  if (returned.size > 0) retryOverdueLoans(state, lender.name);
}

function transfer(state: QuotaState, from: Group, to: Group, amounts: ReadonlyMap<Key, Amount>): void {
  const move = (group: Group, sign: 1 | -1): void =>
    restructure(state, group, () => {
      for (const [key, amount] of amounts) {
        const slot = group.layout.slots.get(key);
        if (slot !== undefined) group.amounts.addHard(slot, sign > 0 ? amount : minus(0, amount));
      }
    });
  move(from, -1);
  move(to, 1);
  state.groupChanged(from);
  state.groupChanged(to);
}

function bigints(amounts: ReadonlyMap<Key, Amount>): ReadonlyMap<Key, bigint> {
  return new Map([...amounts].map(([key, amount]) => [key, BigInt(amount)]));
}
