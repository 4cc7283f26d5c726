import type { ConsumerSpec } from './consumer.js';
import { fairShares, type FairShareOptions, type FairShares, type ShareRequest } from './fair-share.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';

/** A share request that may belong to an area. */
export interface AreaShareRequest extends ShareRequest {
  /** The area of the consumer: another consumer. */
  readonly parent?: string | undefined;
}

/**
 * Divides a cluster in two levels: first among areas and consumers without an area, then each area's fair share among
 * its members. An area requests what its members request, and reserves at least their reservations. An area without a
 * Consumer has no limit and weight 1. An area cannot belong to another area.
 */
export function sharesByArea(
  requests: readonly AreaShareRequest[],
  capacity: Quantities,
  options: FairShareOptions = {},
): FairShares {
  const areas = areasOf(requests);
  if (areas.size === 0) return fairShares(requests, capacity, options);
  const byName = new Map(requests.map((request) => [request.name, request]));
  const isMember = ({ name, parent = '' }: AreaShareRequest): boolean => parent !== '' && !areas.has(name);
  const tops: ShareRequest[] = requests.filter((request) => !isMember(request) && !areas.has(request.name));
  for (const [name, members] of areas) {
    const own = byName.get(name);
    const reserved = total(members.map((member) => member.reserved ?? NOTHING));
    for (const [resource, amount] of own?.reserved ?? NOTHING)
      reserved.set(resource, Math.max(amount, of(reserved, resource)));
    tops.push({ ...own, name, reserved, request: total(members.map(({ request }) => request)) });
  }
  const outer = fairShares(tops, capacity, options);
  const shares = new Map(outer.of);
  const notGuaranteed = new Set(outer.notGuaranteed);
  for (const [name, members] of areas) {
    const inner = fairShares(members, outer.of.get(name) ?? NOTHING, options);
    for (const [member, share] of inner.of) shares.set(member, share);
    for (const resource of inner.notGuaranteed) notGuaranteed.add(resource);
  }
  return { of: shares, notGuaranteed: [...notGuaranteed].sort() };
}

/** Members by area. The pods of the area's own namespace count as a member. */
function areasOf(requests: readonly AreaShareRequest[]): ReadonlyMap<string, readonly ShareRequest[]> {
  const names = new Set(requests.flatMap(({ parent = '' }) => (parent === '' ? [] : [parent])));
  return new Map(
    [...names].map((area) => [
      area,
      requests.flatMap((request): readonly ShareRequest[] => {
        if (request.name === area) return request.request.size === 0 ? [] : [{ name: area, request: request.request }];
        return (request.parent ?? '') === area && !names.has(request.name) ? [request] : [];
      }),
    ]),
  );
}

/** Conflicts between a consumer and its area, or between an area and its members, as messages. */
export function areaProblems(spec: ConsumerSpec, others: readonly ConsumerSpec[]): readonly string[] {
  const area = others.find(({ name }) => name === spec.parent);
  const members = others.filter(({ parent, name }) => parent === (spec.parent ?? '') && name !== spec.name);
  const problems: string[] = [];
  if ((spec.parent ?? '') !== '') {
    if (spec.parent === spec.name) problems.push('a consumer cannot be its own area');
    if ((area?.parent ?? '') !== '')
      problems.push(`${spec.parent} belongs to area ${area?.parent}: areas cannot be nested`);
    if (others.some(({ parent }) => parent === spec.name)) problems.push('an area cannot belong to another area');
    for (const [resource, limit] of area?.hard ?? NOTHING) {
      const amount = spec.hard?.get(resource) ?? 0;
      if (amount > limit) problems.push(`hard of ${resource} exceeds hard of the area ${spec.parent}`);
    }
    const reserved = total([spec, ...members].map((each) => each.reserved ?? NOTHING));
    for (const [resource, amount] of reserved) {
      const limit = Math.min(area?.hard?.get(resource) ?? Infinity, area?.reserved?.get(resource) ?? Infinity);
      if (of(spec.reserved ?? NOTHING, resource) > 0 && amount > limit)
        problems.push(`the consumers of ${spec.parent} reserve more ${resource} than the area`);
    }
  }
  for (const member of others.filter(({ parent }) => parent === spec.name))
    for (const [resource, limit] of spec.hard ?? NOTHING)
      if ((member.hard?.get(resource) ?? 0) > limit)
        problems.push(`hard of ${resource} is below that of its consumer ${member.name}`);
  return problems;
}
