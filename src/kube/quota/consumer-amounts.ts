import type { Quantities } from '../../manifests/quantities.js';
import { readAmounts } from '../amounts.js';
import { record } from '../json.js';

const REQUESTS = 'requests.';

/**
 * The name of a resource in the arbitrator: a Consumer may name resources as nodes do (`cpu`) or as a ResourceQuota
 * does (`requests.cpu`, `requests.storage`), and limits by `limits.cpu`.
 */
export function sharedResource(written: string): string {
  return written.startsWith(REQUESTS) ? written.slice(REQUESTS.length) : written;
}

/**
 * Reads `hard` or `reserved` of a Consumer. Both spellings of one resource with different amounts are a problem:
 * neither counts.
 */
export function readConsumerAmounts(
  written: unknown,
  round: 'up' | 'down',
): { readonly amounts: Quantities; readonly problems: readonly string[] } {
  const { amounts, problems } = readAmounts(written, round);
  const shared = new Map<string, number>();
  const contradicted: string[] = [];
  for (const [name, amount] of amounts) {
    const resource = sharedResource(name);
    const known = shared.get(resource);
    if (known !== undefined && known !== amount) contradicted.push(resource);
    shared.set(resource, amount);
  }
  for (const resource of contradicted) shared.delete(resource);
  return {
    amounts: shared,
    problems: [
      ...problems,
      ...contradicted.map((r) => `${r} and requests.${r} are one resource with two amounts; keep one of them`),
    ],
  };
}

/** The amounts as the author wrote them, for the copy in the Allocation. */
export function writtenAmounts(written: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(record(written)).flatMap(([resource, amount]) =>
      typeof amount === 'string' || typeof amount === 'number' ? [[resource, String(amount)]] : [],
    ),
  );
}
