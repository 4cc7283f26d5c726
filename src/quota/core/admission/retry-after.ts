import { minus, plus, type Amount } from '../../../manifests/amount.js';
import { usedAt } from '../state/budget.js';
import type { Violation } from './decision.js';
import type { Group } from '../state/group.js';
import { CASH } from '../../../manifests/key.js';
import type { QuotaState } from '../state/state.js';
import { chargeOf, chargeVectorOf } from './charge-vector.js';

/** When scheduled grants give every exhausted budget some room, assuming no further usage; null if they do not. */
export function budgetReturnsAt(group: Group, violations: readonly Violation[], now: number): number | null {
  let latest = now;
  for (const { key } of violations) {
    const budget = group.budgets.find((candidate) => CASH + candidate.key === key);
    if (budget === undefined) return null;
    let missing = usedAt(budget, now) - budget.hard;
    const pending = budget.grants.filter(({ left }) => left === null).sort((a, b) => a.validFrom - b.validFrom);
    const lifting = pending.find((grant) => {
      missing = grant.mode === 'reset' ? -grant.amount : missing - grant.amount;
      return missing < 0n;
    });
    if (lifting === undefined) return null;
    latest = Math.max(latest, lifting.validFrom);
  }
  return latest;
}

/** When expiring reservations leave enough room in their group; null if they do not. */
export function roomReturnsAt(state: QuotaState, group: Group, violations: readonly Violation[]): number | null {
  if (group.reserved.size === 0 || group.mode === 'elastic') return null;
  const held: { readonly at: number; readonly vector: readonly Amount[] }[] = [];
  group.reserved.forEach((_, key) => {
    const reservation = state.reservations.get(key);
    const entry = reservation === undefined ? undefined : state.workloads.get(reservation.workload);
    const charged = reservation === undefined ? null : chargeOf(state, group, reservation.workload, entry);
    if (reservation === undefined || charged === null) return;
    const stays = entry?.group === group.name ? chargeVectorOf(group.layout, entry) : null;
    held.push({
      at: Math.max(...reservation.candidates.map(({ expiresAt }) => expiresAt)),
      vector: charged.map((amount, slot) => minus(amount, stays?.[slot] ?? 0)),
    });
  });
  held.sort((a, b) => a.at - b.at);
  let at: number | null = null;
  for (const { key, short } of violations) {
    if (key.startsWith(CASH)) return null;
    const slot = group.layout.slots.get(key) as number;
    let sum: Amount = 0;
    const enough = held.find(({ vector }) => (sum = plus(sum, vector[slot] as Amount)) >= short);
    if (enough === undefined) return null;
    at = Math.max(at ?? 0, enough.at);
  }
  return at;
}
