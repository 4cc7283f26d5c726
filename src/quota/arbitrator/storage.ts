import { sharesByArea } from './area.js';
import type { ConsumerSpec } from './consumer.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';
import { isStorage } from './storage-resource.js';

/** Storage that consumers request by volume claims instead of pods. */
export interface StorageSituation {
  /** The storage to divide. A resource without an entry has no limit, because volumes are made on demand. */
  readonly capacity: Quantities;
  /** Bound volume claims, by consumer. */
  readonly used: ReadonlyMap<string, Quantities>;
  /** Pending volume claims, by consumer. */
  readonly pending: ReadonlyMap<string, Quantities>;
}

/** Storage usage of a consumer. */
export interface StorageUsage {
  readonly used: Quantities;
  readonly pending: Quantities;
  readonly deserved: Quantities;
}

export interface StorageShares {
  readonly of: ReadonlyMap<string, StorageUsage>;
  /** Resources whose reservations exceed the capacity. */
  readonly notGuaranteed: readonly string[];
}

/**
 * Divides each storage resource separately: a volume claim requests no cores, so an exhausted storage class blocks no
 * other request. An eviction frees no storage, so the arbitrator evicts no pod for storage.
 */
export function storageShares(
  specs: readonly ConsumerSpec[],
  { capacity, used, pending }: StorageSituation,
  lendReserved: boolean,
): StorageShares {
  const named = [...used.values(), ...pending.values(), ...specs.flatMap(({ hard, reserved }) => [hard, reserved])];
  const resources = new Set(
    named.flatMap((amounts = NOTHING) => [...amounts.keys()].filter((resource) => isStorage(resource))),
  );
  const deserved = new Map(specs.map(({ name }) => [name, new Map<string, number>()]));
  const notGuaranteed: string[] = [];
  for (const resource of [...resources].sort()) {
    const requests = specs.map((spec) => {
      const request = of(used.get(spec.name) ?? NOTHING, resource) + of(pending.get(spec.name) ?? NOTHING, resource);
      return {
        ...spec,
        hard: only(spec.hard, resource),
        reserved: only(spec.reserved, resource),
        request: request === 0 ? NOTHING : new Map([[resource, request]]),
      };
    });
    // Without a limit, the capacity is the sum of all requests and reservations.
    const limitless = total(requests.flatMap(({ request, reserved = NOTHING }) => [request, reserved]));
    const limit = capacity.get(resource) ?? of(limitless, resource);
    const shares = sharesByArea(requests, new Map([[resource, limit]]), { lendReserved });
    for (const [name, share] of shares.of) {
      const amount = of(share, resource);
      if (amount > 0) deserved.get(name)?.set(resource, amount);
    }
    notGuaranteed.push(...shares.notGuaranteed);
  }
  return {
    of: new Map(
      specs.map(({ name }) => [
        name,
        {
          used: used.get(name) ?? NOTHING,
          pending: pending.get(name) ?? NOTHING,
          deserved: deserved.get(name) ?? NOTHING,
        },
      ]),
    ),
    notGuaranteed,
  };
}

function only(amounts: Quantities | undefined, resource: string): Quantities | undefined {
  const amount = amounts?.get(resource);
  return amount === undefined ? undefined : new Map([[resource, amount]]);
}
