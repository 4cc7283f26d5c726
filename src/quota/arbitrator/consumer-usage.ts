import { of, total, type Quantities } from './quantities.js';

/** How a consumer stands. */
export interface ConsumerUsage {
  readonly name: string;
  readonly deserved: Quantities;
  readonly reserved: Quantities;
  /** Of its pods that are not leaving. */
  readonly used: Quantities;
  /** Of its pods that wait for a node. */
  readonly pending: Quantities;
}

/** What a consumer uses beyond what it deserves. */
export function excessOf({ used, deserved }: Pick<ConsumerUsage, 'used' | 'deserved'>): Quantities {
  return new Map(
    [...used].flatMap(([resource, amount]) => {
      const excess = amount - of(deserved, resource);
      return excess > 0 ? [[resource, excess] as const] : [];
    }),
  );
}

/** What a consumer waits for and deserves. */
export function lackOf({ used, pending, deserved }: Pick<ConsumerUsage, 'used' | 'pending' | 'deserved'>): Quantities {
  return new Map(
    [...pending].flatMap(([resource, waits]) => {
      const lack = Math.min(of(deserved, resource), of(used, resource) + waits) - of(used, resource);
      return lack > 0 ? [[resource, lack] as const] : [];
    }),
  );
}

/** What is missing for those who wait for what they deserve, once everything that is leaving has left. */
export function missing(capacity: Quantities, usages: readonly ConsumerUsage[]): Map<string, number> {
  const used = total(usages.map((usage) => usage.used));
  const found = new Map<string, number>();
  for (const [resource, lack] of total(usages.map(lackOf))) {
    const short = lack - (of(capacity, resource) - of(used, resource));
    if (short > 0) found.set(resource, short);
  }
  return found;
}

/** Who waits for something that it deserves: names by resource. */
export function waiting(usages: readonly ConsumerUsage[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const usage of usages) {
    for (const resource of lackOf(usage).keys()) {
      const names = found.get(resource);
      if (names === undefined) found.set(resource, [usage.name]);
      else names.push(usage.name);
    }
  }
  return found;
}
