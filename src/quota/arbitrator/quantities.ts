/**
 * How much of each resource: `cpu`, `memory`, `nvidia.com/gpu`. Whole numbers up to 2^53, in base units of the caller's
 * choice.
 */
export type Quantities = ReadonlyMap<string, number>;

/** Nothing of anything. */
export const NOTHING: Quantities = new Map();

/** What there is of one resource: 0 where it is not named. */
export function of(quantities: Quantities, resource: string): number {
  return quantities.get(resource) ?? 0;
}

/** Adds up resource by resource. */
export function total(parts: Iterable<Quantities>): Map<string, number> {
  const sum = new Map<string, number>();
  for (const part of parts) for (const [resource, amount] of part) sum.set(resource, of(sum, resource) + amount);
  return sum;
}
