import type { ConsumerSpec } from './consumer.js';
import { ProgressiveFilling } from './progressive-filling.js';
import { of, type Quantities } from './quantities.js';

/** A consumer and what it asks for: what it uses and what waits. */
export interface ShareRequest extends ConsumerSpec {
  readonly request: Quantities;
}

/** What everybody deserves. */
export interface FairShares {
  /** By name, for every resource that the cluster has. Whole numbers. */
  readonly of: ReadonlyMap<string, Quantities>;
  /** Resources of which more is reserved than there is: what is reserved was scaled down. */
  readonly notGuaranteed: readonly string[];
}

export interface FairShareOptions {
  /** What is reserved and not asked for goes to others. */
  readonly lendReserved?: boolean | undefined;
}

/**
 * Divides a cluster: weighted dominant resource fairness (Ghodsi et al., NSDI 2011) in its fluid form, with what is
 * reserved as a floor and `hard` as a ceiling. System consumers come first. All others rise together, each with all
 * resources that it asks for in the proportion that it asks for them, until it has what it asks for or something that
 * it needs is used up; what it leaves raises the others further.
 *
 * Never more than there is, never more than `hard`, at least what is reserved while the cluster suffices, and nobody is
 * left wanting while everything that it asks for is there. Resources that the cluster does not have are left out. O(n R
 * log n).
 */
export function fairShares(
  claims: readonly ShareRequest[],
  capacity: Quantities,
  { lendReserved = false }: FairShareOptions = {},
): FairShares {
  const resources = [...capacity.keys()].filter((resource) => of(capacity, resource) > 0).sort();
  const left = resources.map((resource) => of(capacity, resource));
  const found = new Map<string, number[]>();
  for (const claim of claims.filter(({ isSystem }) => isSystem === true)) {
    const share = resources.map((resource, r) => Math.min(wanted(claim, resource), left[r] as number));
    share.forEach((amount, r) => (left[r] = (left[r] as number) - amount));
    found.set(claim.name, share);
  }
  const others = claims.filter(({ isSystem }) => isSystem !== true);
  const demands = others.map((claim) => resources.map((resource) => wanted(claim, resource)));
  const { floors, notGuaranteed } = floorsOf(others, demands, resources, left, lendReserved);
  const filling = new ProgressiveFilling(
    demands,
    floors,
    others.map(({ weight }) => weight ?? 1),
    left,
  );
  const shares = filling.run();
  toWholeNumbers(shares, floors, left);
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

/** What everybody has in any case; in proportion where that is more than there is. */
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
    // Rounded down, so that they fit together; what that leaves is shared like everything else.
    for (const floor of floors) floor[r] = Math.floor(((floor[r] as number) * limit) / sum);
  });
  return { floors, notGuaranteed };
}

/** An amount this close to a whole number, in parts of itself, is one: the rest is the error of floating point. */
const NEARLY = 1e-12;

/** Rounds shares down, and takes back what rounding errors gave beyond what there is. */
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
      share[r] = Math.abs(whole - amount) <= Math.max(1e-6, amount * NEARLY) ? whole : Math.floor(amount);
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
