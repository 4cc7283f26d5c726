import { amount, type Quantity } from './quantity.js';

/**
 * Amounts by resource (`cpu`, `memory`, `nvidia.com/gpu`): whole numbers up to 2^53 in base units that the caller
 * chooses.
 */
export type Quantities = ReadonlyMap<string, number>;

export const NOTHING: Quantities = new Map();

/**
 * Amounts from quantities as Kubernetes writes them: `amounts({ cpu: '4', memory: '8Gi', 'nvidia.com/gpu': 1 })`.
 * Throws a RangeError if a quantity is invalid or beyond 2^53 base units.
 */
export function amounts(quantities: Readonly<Record<string, Quantity>>): Quantities {
  return new Map(
    Object.entries(quantities).map(([resource, quantity]): [string, number] => {
      const value = Number(amount(resource, quantity));
      if (!Number.isSafeInteger(value)) throw new RangeError(`${resource}: ${quantity} is beyond 2^53 base units`);
      return [resource, value];
    }),
  );
}

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
