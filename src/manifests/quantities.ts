/**
 * Amounts by resource (`cpu`, `memory`, `nvidia.com/gpu`): whole numbers up to 2^53 in base units that the caller
 * chooses.
 */
export type Quantities = ReadonlyMap<string, number>;

export const NOTHING: Quantities = new Map();

/** The amount of one resource; 0 if it is missing. */
export function of(quantities: Quantities, resource: string): number {
  return quantities.get(resource) ?? 0;
}

/** The sum of several amounts, by resource. */
export function total(parts: Iterable<Quantities>): Map<string, number> {
  const sum = new Map<string, number>();
  for (const part of parts) for (const [resource, amount] of part) sum.set(resource, of(sum, resource) + amount);
  return sum;
}
