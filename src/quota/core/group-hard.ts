import type { Group } from './group.js';
import { CASH, type Key } from './key.js';

/** The limits of a group by key, with budgets; in base units, for cash in base units times milliseconds. */
export function hardOf(group: Group): ReadonlyMap<Key, bigint> {
  return new Map([
    ...group.layout.keys.map((key, slot): [Key, bigint] => [key, BigInt(group.amounts.hard(slot))]),
    ...group.budgets.filter(({ listed }) => listed).map(({ key, hard }): [Key, bigint] => [CASH + key, hard]),
  ]);
}
