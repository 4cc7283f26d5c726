import { declarationOf, isDeclaredLoan, type DeclaredLoan, readSpec, type GroupStatus } from '../../quota/internal.js';
import { cashTarget } from '../../manifests/key.js';
import { HOUR_MS, readQuantity } from '../../manifests/quantity.js';
import type { GroupObject } from '../../kube/quota/group-object.js';

/** Groups by depth: roots first, then their children, and so on. */
export function levelsOf(groups: readonly GroupObject[]): readonly (readonly GroupObject[])[] {
  const byName = new Map(groups.map((group) => [group.spec.name, group]));
  const levels: GroupObject[][] = [];
  for (const group of groups) {
    let depth = 0;
    for (
      let at = byName.get(group.spec.parent ?? '');
      at !== undefined && depth < groups.length;
      at = byName.get(at.spec.parent ?? '')
    )
      depth++;
    (levels[depth] ??= []).push(group);
  }
  return levels.filter((level) => level !== undefined);
}

/** Whether the ledger has exactly the declared loans that have not ended. */
function areLoansUpToDate(declared: readonly DeclaredLoan[], { name, loans }: GroupStatus, now: number): boolean {
  const due = declared.filter(({ until }) => until > now);
  return (
    due.every((wanted) => loans.some((loan) => isDeclaredLoan(loan, name, wanted))) &&
    loans.every((loan) => declared.some((wanted) => isDeclaredLoan(loan, name, wanted)))
  );
}

/**
 * Whether the ledger has the limits, loans and grants that an object declares. Amounts that grants add to budgets are
 * not compared.
 */
export function isUpToDate({ spec }: GroupObject, known: GroupStatus, now: number): boolean {
  const { hard: limits, budgets, grants, loaned } = known;
  const hard = new Map([
    ...[...limits].map(([key, amount]): [string, bigint] => [key, amount - (loaned.get(key) ?? 0n)]),
    ...budgets.map(({ key, base }): [string, bigint] => [key, base]),
  ]);
  const keys = Object.keys(spec.hard);
  const read = readSpec({ hard: spec.hard, grants: spec.grants, loans: spec.loans });
  if (read.ok && declarationOf(read.grants ?? []) !== declarationOf(grants)) return false;
  if (read.ok && !areLoansUpToDate(read.loans ?? [], known, now)) return false;
  return (
    keys.length === hard.size &&
    keys.every((key) => {
      const read = readQuantity(key, spec.hard[key] ?? 0, 'down');
      const unit = cashTarget(key) === null ? 1n : HOUR_MS;
      return read.ok && BigInt(read.amount) * unit === hard.get(key);
    })
  );
}
