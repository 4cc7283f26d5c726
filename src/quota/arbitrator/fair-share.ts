import type { ConsumerSpec } from './consumer.js';
import { ProgressiveFilling } from './progressive-filling.js';
import { of, type Quantities } from '../../manifests/quantities.js';

/** A consumer with its total request: usage and pending requests. */
export interface ShareRequest extends ConsumerSpec {
  readonly request: Quantities;
}

export interface FairShares {
  /** Fair shares by consumer, for every resource of the cluster; whole numbers. */
  readonly of: ReadonlyMap<string, Quantities>;
  /** Resources whose reservations exceed the capacity and were scaled down. */
  readonly notGuaranteed: readonly string[];
}

export interface FairShareOptions {
  /** Whether other consumers may use reserved amounts that the consumer does not request. */
  readonly lendReserved?: boolean | undefined;
}

/**
 * Divides a cluster by weighted dominant resource fairness (Ghodsi et al., NSDI 2011), computed by progressive filling
 * with reservations as lower bounds and `hard` as upper bounds. System consumers are served first. The shares of all
 * others grow together, each in the proportions of its request, until the request is met or a requested resource is
 * exhausted; the rest goes to the others.
 *
 * No share exceeds the capacity or `hard`. Each is at least the reservation while the cluster suffices. A request is
 * met if all its resources are available. Resources that the cluster does not have are left out. O(n R log n).
 */
export function fairShares(
  claims: readonly ShareRequest[],
  capacity: Quantities,
  { lendReserved = false }: FairShareOptions = {},
): FairShares {
  const resources = [...capacity.keys()].filter((resource) => of(capacity, resource) > 0).sort();
  const available = resources.map((resource) => of(capacity, resource));
  const found = new Map<string, number[]>();
  for (const claim of claims.filter(({ isSystem }) => isSystem === true)) {
    const share = resources.map((resource, r) => Math.min(wanted(claim, resource), available[r] as number));
    share.forEach((amount, r) => (available[r] = (available[r] as number) - amount));
    found.set(claim.name, share);
  }
  const others = claims.filter(({ isSystem }) => isSystem !== true);
  const demands = others.map((claim) => resources.map((resource) => wanted(claim, resource)));
  const { floors, notGuaranteed } = floorsOf(others, demands, resources, available, lendReserved);
  const filling = new ProgressiveFilling(
    demands,
    floors,
    others.map(({ weight }) => weight ?? 1),
    available,
  );
  const shares = filling.run();
  toWholeNumbers(shares, floors, available);
  others.forEach(({ name }, at) => found.set(name, shares[at] as number[]));
  return {
    of: new Map(
      [...found].map(([name, share]) => [
        name,
        new Map(resources.map((resource, r) => [resource, share[r] as number])),
      ]),
    ),
    notGuaranteed: notGuaranteed.map((r) => resources[r] as string),
  };
}

function wanted({ request, hard }: ShareRequest, resource: string): number {
  return Math.min(of(request, resource), hard?.get(resource) ?? Infinity);
}

interface Floors {
  readonly floors: readonly (readonly number[])[];
  readonly notGuaranteed: readonly number[];
}

/** Lower bounds of the shares; scaled down in proportion where they exceed the capacity. */
function floorsOf(
  claims: readonly ShareRequest[],
  demands: readonly (readonly number[])[],
  resources: readonly string[],
  capacity: readonly number[],
  lendReserved: boolean,
): Floors {
  const floors = claims.map(({ reserved, hard }, at) =>
    resources.map((resource, r) => {
      const floor = Math.min(reserved?.get(resource) ?? 0, hard?.get(resource) ?? Infinity);
      return lendReserved ? Math.min(floor, demands[at]?.[r] ?? 0) : floor;
    }),
  );
  const notGuaranteed: number[] = [];
  resources.forEach((_, r) => {
    const sum = floors.reduce((all, floor) => all + (floor[r] as number), 0);
    const limit = capacity[r] as number;
    if (sum <= limit) return;
    notGuaranteed.push(r);
    // Rounded down, so that the sum fits; the remainder is shared like the rest.
    for (const floor of floors) floor[r] = Math.floor(((floor[r] as number) * limit) / sum);
  });
  return { floors, notGuaranteed };
}

/** Relative tolerance of floating point errors: an amount this close to a whole number is that number. */
const TOLERANCE = 1e-12;

/** Rounds shares down, and takes back amounts that rounding errors gave beyond the capacity. */
function toWholeNumbers(
  shares: readonly number[][],
  floors: readonly (readonly number[])[],
  capacity: readonly number[],
): void {
  capacity.forEach((limit, r) => {
    let excess = -limit;
    for (const share of shares) {
      const amount = share[r] as number;
      const whole = Math.round(amount);
      share[r] = Math.abs(whole - amount) <= Math.max(1e-6, amount * TOLERANCE) ? whole : Math.floor(amount);
      excess += share[r];
    }
    for (let at = 0; at < shares.length && excess > 0; at++) {
      const share = shares[at] as number[];
      const given = Math.min(excess, (share[r] as number) - (floors[at]?.[r] ?? 0));
      if (given <= 0) continue;
      share[r] = (share[r] as number) - given;
      excess -= given;
    }
  });
}
