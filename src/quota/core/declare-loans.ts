import { most, minus, plus, type Amount } from './amount.js';
import type { Decision } from './decision.js';
import type { DeclaredLoan } from './declared-loan.js';
import type { Hard } from './group-spec.js';
import type { Key } from './key.js';
import type { Loan } from './loan.js';
import { addLoan, endLoan } from './loans.js';
import { readQuantity, type Quantity } from './quantity.js';
import type { QuotaState } from './state.js';

/** Id of a declared loan among all loans: names of groups have no slash. */
export function loanId(lender: string, name: string): string {
  return `${lender}/${name}`;
}

/** Loans that the specification of a group declared and that are not over. */
export function declaredLoans(state: QuotaState, lender: string): readonly Loan[] {
  if (state.loans.size === 0) return [];
  return [...state.loans.entries()].flatMap(([id, loan]) =>
    loan.lender === lender && id.startsWith(loanId(lender, '')) ? [loan] : [],
  );
}

/** Whether a loan is what a declaration asks for; of one that is overdue a part has been returned. */
export function isDeclaredLoan(loan: Loan, lender: string, declared: DeclaredLoan): boolean {
  return (
    loan.id === loanId(lender, declared.name) &&
    loan.borrower === declared.borrower &&
    loan.until === declared.until &&
    (loan.state === 'overdue' || isSame(loan.amounts, declared.amounts))
  );
}

function isSame(amounts: ReadonlyMap<Key, Amount>, declared: Hard): boolean {
  const keys = Object.keys(declared);
  return (
    keys.length === amounts.size &&
    keys.every((key) => {
      const read = readQuantity(key, declared[key] as Quantity, 'down');
      return read.ok && read.amount === amounts.get(key);
    })
  );
}

/**
 * Replaces the loans that the specification of a group declares: one that is not declared any more goes back now. The
 * refusal of the first that cannot be made, or null.
 */
export function declareLoans(state: QuotaState, lender: string, wanted: readonly DeclaredLoan[]): Decision | null {
  for (const loan of declaredLoans(state, lender))
    if (!wanted.some((declared) => isDeclaredLoan(loan, lender, declared))) endLoan(state, loan.id);
  let refused: Decision | null = null;
  for (const { name, ...declared } of wanted) {
    const id = loanId(lender, name);
    if (declared.until <= state.now || state.loans.has(id)) continue;
    const decision = addLoan(state, { id, lender, ...declared });
    if (!decision.allowed) refused ??= decision;
  }
  return refused;
}

/** What a group has by loans beyond its specification, by key: less than nothing of what it lends. */
export function loanedOf(state: QuotaState, group: string): ReadonlyMap<Key, Amount> {
  const loaned = new Map<Key, Amount>();
  if (state.loans.size === 0) return loaned;
  state.loans.forEach(({ lender, borrower, amounts, state: stands }) => {
    if (stands === 'pending' || (lender !== group && borrower !== group)) return;
    for (const [key, amount] of amounts)
      loaned.set(key, borrower === group ? plus(loaned.get(key) ?? 0, amount) : minus(loaned.get(key) ?? 0, amount));
  });
  return loaned;
}

/**
 * Limits of a specification as they are with loans: what is lent is not there, what is borrowed is. `below` are keys of
 * which more is lent than the specification has.
 */
export function withLoans(
  state: QuotaState,
  group: string,
  hard: Hard,
): { readonly hard: Hard; readonly below: readonly Key[] } {
  const loaned = loanedOf(state, group);
  const changed: Record<Key, Quantity> = {};
  const below: Key[] = [];
  for (const [key, amount] of loaned) {
    const read = Object.hasOwn(hard, key) ? readQuantity(key, hard[key] as Quantity, 'down') : null;
    if (read?.ok !== true) continue;
    const actual = plus(read.amount, amount);
    if (actual < 0) below.push(key);
    changed[key] = BigInt(most(0, actual));
  }
  return { hard: { ...hard, ...changed }, below };
}
