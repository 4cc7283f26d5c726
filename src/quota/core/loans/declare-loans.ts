import { maxOf, minus, plus, type Amount } from '../../../manifests/amount.js';
import type { Decision } from '../admission/decision.js';
import type { DeclaredLoan } from '../state/declared-loan.js';
import type { Hard } from '../state/group-spec.js';
import type { Key } from '../../../manifests/key.js';
import type { Loan } from '../state/loan.js';
import { addLoan, endLoan } from './loans.js';
import { readQuantity, type Quantity } from '../../../manifests/quantity.js';
import type { QuotaState } from '../state/state.js';

/** Id of a declared loan among all loans; unique because group names have no slash. */
function loanId(lender: string, name: string): string {
  return `${lender}/${name}`;
}

/** Declared loans of a group that have not ended. */
export function declaredLoans(state: QuotaState, lender: string): readonly Loan[] {
  if (state.loans.size === 0) return [];
  return [...state.loans.entries()].flatMap(([id, loan]) =>
    loan.lender === lender && id.startsWith(loanId(lender, '')) ? [loan] : [],
  );
}

/** Whether a loan matches a declaration. A part of an overdue loan may have been returned. */
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
 * Replaces the declared loans of a group; loans that are no longer declared end now. Returns the first refusal, or
 * null.
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

/** The quota of a group from loans, by key; negative for lent quota. */
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
 * The limits of a specification with loans added and subtracted. `below` lists keys whose lent amount exceeds the
 * specification.
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
    changed[key] = BigInt(maxOf(0, actual));
  }
  return { hard: { ...hard, ...changed }, below };
}
