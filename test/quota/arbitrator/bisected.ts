import type { ShareRequest, Quantities } from '../../../src/quota/arbitrator/index.js';

const HALVINGS = 100;

/**
 * Fair shares by definition: search for the highest level at which everything fits, stop the consumers whose request is
 * met or that need an exhausted resource, and search again. Without system consumers; the reservations must fit. The
 * result is indexed by claim and by resource in the order of `capacity`.
 */
export function bisected(claims: readonly ShareRequest[], capacity: Quantities): number[][] {
  const resources = [...capacity.keys()];
  const limits = resources.map((resource) => capacity.get(resource) ?? 0);
  const demands = claims.map(({ request, hard }) =>
    resources.map((resource, r) =>
      limits[r] === 0 ? 0 : Math.min(request.get(resource) ?? 0, hard?.get(resource) ?? Infinity),
    ),
  );
  const floors = claims.map(({ reserved, hard }) =>
    resources.map((resource, r) =>
      limits[r] === 0 ? 0 : Math.min(reserved?.get(resource) ?? 0, hard?.get(resource) ?? Infinity),
    ),
  );
  const shares = demands.map((demand) =>
    Math.max(0, ...demand.map((amount, r) => (amount === 0 ? 0 : amount / (limits[r] as number)))),
  );
  const fraction = (who: number, level: number): number =>
    Math.min(1, (level * (claims[who]?.weight ?? 1)) / (shares[who] as number));
  const stopped = shares.map((share) => (share === 0 ? 0 : null)) as (number | null)[];
  const amount = (who: number, r: number, level: number): number =>
    Math.max(floors[who]?.[r] ?? 0, (stopped[who] ?? fraction(who, level)) * (demands[who]?.[r] ?? 0));
  const sum = (r: number, level: number): number => claims.reduce((all, _, who) => all + amount(who, r, level), 0);
  const top = 2 * Math.max(1, ...shares);
  while (stopped.includes(null)) {
    let [low, high] = [0, top];
    for (let halving = 0; halving < HALVINGS; halving++) {
      const middle = (low + high) / 2;
      if (limits.every((limit, r) => sum(r, middle) <= limit * (1 + 1e-13))) low = middle;
      else high = middle;
    }
    const isFull = limits.map((limit, r) => sum(r, low) >= limit * (1 - 1e-9));
    const before = stopped.filter((at) => at === null).length;
    const stops = stopped.map(
      (at, who) =>
        at === null &&
        (fraction(who, low) >= 1 - 1e-12 ||
          (demands[who] ?? []).some(
            (demand, r) =>
              demand > 0 && isFull[r] === true && fraction(who, low) * demand >= (floors[who]?.[r] ?? 0) * (1 - 1e-9),
          )),
    );
    stops.forEach((isStopped, who) => {
      if (isStopped) stopped[who] = fraction(who, low);
    });
    // Floating point errors may hide this consumer: one that grows at the highest level has reached its share.
    if (stopped.filter((at) => at === null).length === before)
      stopped.forEach((at, who) => (stopped[who] = at ?? fraction(who, low)));
  }
  return claims.map((_, who) => resources.map((_resource, r) => amount(who, r, 0)));
}
