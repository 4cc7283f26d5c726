import type { Quantities } from '../manifests/quantities.js';
import { record } from './json.js';
import { formatQuantity, readQuantity } from '../manifests/quantity.js';

/** Amounts in the form of Kubernetes objects: `{ cpu: '500m', memory: '8Gi' }`. */
export type WrittenAmounts = Readonly<Record<string, string>>;

/** Reads amounts in base units: thousandths of cores, bytes, counts. Invalid ones are left out and reported. */
export function readAmounts(
  written: unknown,
  round: 'up' | 'down',
): { readonly amounts: Quantities; readonly problems: readonly string[] } {
  const amounts = new Map<string, number>();
  const problems: string[] = [];
  for (const [resource, quantity] of Object.entries(record(written))) {
    if (typeof quantity !== 'string' && typeof quantity !== 'number') {
      problems.push(`${resource}: expected a quantity`);
      continue;
    }
    const read = readQuantity(resource, quantity, round);
    if (read.ok && Number.isSafeInteger(Number(read.amount)) && read.amount >= 0)
      amounts.set(resource, Number(read.amount));
    else problems.push(`${resource}: ${read.ok ? `${quantity} is out of range` : read.reason}`);
  }
  return { amounts, problems };
}

/** Writes amounts by resource name; only those of `resources` if given. */
export function writeAmounts(amounts: Quantities, resources: ReadonlySet<string> | null = null): WrittenAmounts {
  const shown = [...amounts]
    .filter(([resource]) => resources === null || resources.has(resource))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(shown.map(([resource, amount]) => [resource, formatQuantity(resource, amount)]));
}
