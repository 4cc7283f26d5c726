import { formatAmount } from '../manifests/quantity.js';
import type { ExplainedKey, Explanation } from '../quota/index.js';
import { cashTarget } from '../manifests/key.js';
import { table } from './table.js';

/** The keys of an explanation as a JSON value, with amounts as quantities. */
export function plainKeys(keys: readonly ExplainedKey[]): readonly Readonly<Record<string, unknown>>[] {
  return keys.map((row) => {
    const [group, key, hard, used, requested, room] = cellsOf(row);
    return { group, key, hard, used, requested, room, fits: row.fits };
  });
}

/** The same as a table, with other types that would fit. */
export function explainedText({ keys, otherTypes }: Pick<Explanation, 'keys' | 'otherTypes'>): string {
  const rows = keys.map((row) => [...cellsOf(row), row.fits ? '' : 'no room']);
  const others = Object.entries(otherTypes).map(([family, types]) => `  fits as ${family}-type ${types.join(', ')}\n`);
  return [
    rows.length === 0 ? '' : indented(table([['GROUP', 'KEY', 'HARD', 'USED', 'ASKED', 'ROOM', ''], ...rows])),
    ...others,
  ].join('');
}

/** Indents a text by two columns. */
export function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}

function cellsOf({ group, key, hard, used, requested, room }: ExplainedKey): readonly string[] {
  return [
    group,
    key,
    formatAmount(key, hard),
    formatAmount(key, used),
    formatAmount(cashTarget(key) ?? key, requested),
    formatAmount(key, room),
  ];
}
