import { of, total, type Quantities } from '../../manifests/quantities.js';

/** Limits, usage and fair share of a consumer. */
export interface ConsumerUsage {
  readonly name: string;
  readonly deserved: Quantities;
  readonly reserved: Quantities;
  /** Requests of its scheduled pods, without terminating pods. */
  readonly used: Quantities;
  /** Requests of its pods without a node. */
  readonly pending: Quantities;
}

/** Usage beyond the fair share, by resource. */
export function excessOf({ used, deserved }: Pick<ConsumerUsage, 'used' | 'deserved'>): Quantities {
  return new Map(
    [...used].flatMap(([resource, amount]) => {
      const excess = amount - of(deserved, resource);
      return excess > 0 ? [[resource, excess] as const] : [];
    }),
  );
}

/** Pending requests within the fair share, by resource. */
function lackOf({ used, pending, deserved }: Pick<ConsumerUsage, 'used' | 'pending' | 'deserved'>): Quantities {
  return new Map(
    [...pending].flatMap(([resource, waits]) => {
      const lack = Math.min(of(deserved, resource), of(used, resource) + waits) - of(used, resource);
      return lack > 0 ? [[resource, lack] as const] : [];
    }),
  );
}

/** By resource: amounts that consumers lack within their fair shares after all terminating pods have ended. */
export function missing(capacity: Quantities, usages: readonly ConsumerUsage[]): Map<string, number> {
  const used = total(usages.map((usage) => usage.used));
  const found = new Map<string, number>();
  for (const [resource, lack] of total(usages.map(lackOf))) {
    const short = lack - (of(capacity, resource) - of(used, resource));
    if (short > 0) found.set(resource, short);
  }
  return found;
}

/** Names of the consumers that lack a resource within their fair share, by resource. */
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
