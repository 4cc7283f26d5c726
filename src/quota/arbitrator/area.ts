import type { ConsumerSpec } from './consumer.js';
import { fairShares, type FairShareOptions, type FairShares, type ShareRequest } from './fair-share.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';

/** A share request that may belong to an area. */
export interface AreaShareRequest extends ShareRequest {
  /** The area of the consumer: another consumer. */
  readonly parent?: string | undefined;
}

/** A consumer, or an area with what its members request and reserve together. */
interface ShareNode {
  readonly request: ShareRequest;
  /** Empty for a consumer. The pods of the area's own namespace count as a member. */
  readonly members: readonly ShareNode[];
}

/**
 * Divides a cluster level by level: first among areas and consumers without an area, then each area's fair share among
 * its members, which may be areas. An area requests what its members request within their limits, and reserves at
 * least their reservations. An area without a Consumer has no limit and weight 1.
 */
export function sharesByArea(
  requests: readonly AreaShareRequest[],
  capacity: Quantities,
  options: FairShareOptions = {},
): FairShares {
  const shares = new Map<string, Quantities>();
  const notGuaranteed = new Set<string>();
  const divide = (nodes: readonly ShareNode[], available: Quantities): void => {
    const level = fairShares(
      nodes.map(({ request }) => request),
      available,
      options,
    );
    for (const [name, share] of level.of) shares.set(name, share);
    for (const resource of level.notGuaranteed) notGuaranteed.add(resource);
    for (const { request, members } of nodes)
      if (members.length > 0) divide(members, level.of.get(request.name) ?? NOTHING);
  };
  divide(nodesOf(requests), capacity);
  return { of: shares, notGuaranteed: [...notGuaranteed].sort() };
}

function nodesOf(requests: readonly AreaShareRequest[]): readonly ShareNode[] {
  const byName = new Map(requests.map((request) => [request.name, request]));
  const members = membersByArea(requests);
  const nodeOf = (name: string): ShareNode => {
    const own = byName.get(name);
    const children = (members.get(name) ?? []).map((member) => nodeOf(member.name));
    if (children.length === 0) return { request: own ?? { name, request: NOTHING }, members: [] };
    const inside: readonly ShareNode[] =
      own === undefined || own.request.size === 0
        ? children
        : [{ request: { name, request: own.request }, members: [] }, ...children];
    const request = total(inside.map((node) => withinHard(node.request)));
    return { request: { ...own, name, request, reserved: reservedBy(own, inside) }, members: inside };
  };
  const tops = requests.filter((request) => areaOf(request, byName) === '').map(({ name }) => name);
  const unnamed = [...members.keys()].filter((area) => !byName.has(area));
  return [...tops, ...unnamed].map(nodeOf);
}

function withinHard({ request, hard }: ShareRequest): Quantities {
  if (hard === undefined) return request;
  return new Map(
    [...request].map(([resource, amount]) => [resource, Math.min(amount, hard.get(resource) ?? Infinity)]),
  );
}

/** What an area reserves: its own reservation, or those of its members where they are larger. */
function reservedBy(own: Pick<ConsumerSpec, 'reserved'> | undefined, members: readonly ShareNode[]): Quantities {
  const reserved = total(members.map(({ request }) => request.reserved ?? NOTHING));
  for (const [resource, amount] of own?.reserved ?? NOTHING)
    reserved.set(resource, Math.max(amount, of(reserved, resource)));
  return reserved;
}

/** The members of each area. An area may have no Consumer. */
function membersByArea<T extends Pick<ConsumerSpec, 'name' | 'parent'>>(specs: readonly T[]): Map<string, T[]> {
  const byName = new Map(specs.map((spec) => [spec.name, spec]));
  const members = new Map<string, T[]>();
  for (const spec of specs) {
    const area = areaOf(spec, byName);
    if (area === '') continue;
    const known = members.get(area);
    if (known === undefined) members.set(area, [spec]);
    else known.push(spec);
  }
  return members;
}

/** The area of a consumer; empty for none, and for a consumer that is above itself, which the webhook refuses. */
function areaOf(
  { name, parent = '' }: Pick<ConsumerSpec, 'name' | 'parent'>,
  byName: ReadonlyMap<string, Pick<ConsumerSpec, 'name' | 'parent'>>,
): string {
  return parent === '' || pathOf(parent, byName).includes(name) ? '' : parent;
}

/** A consumer and the areas above it; ends where a name repeats. */
function pathOf(name: string, byName: ReadonlyMap<string, Pick<ConsumerSpec, 'parent'>>): readonly string[] {
  const path: string[] = [];
  for (let at = name; at !== '' && !path.includes(at); at = byName.get(at)?.parent ?? '') path.push(at);
  return path;
}

/** What all consumers reserve together: the reservations of an area include those of its members. */
export function totalReserved(specs: readonly ConsumerSpec[]): Quantities {
  const nodes = nodesOf(specs.map((spec) => ({ ...spec, request: NOTHING })));
  return total(nodes.map(({ request }) => request.reserved ?? NOTHING));
}

/**
 * The other reservations that count with that of a consumer, given what all reserve together. A member's reservation is
 * part of its area's.
 */
export function reservedBeside({ parent = '', reserved = NOTHING }: ConsumerSpec, all: Quantities): Quantities {
  return new Map(parent === '' ? [...all].map(([resource, sum]) => [resource, sum - of(reserved, resource)]) : []);
}

/** Conflicts between a consumer and the areas above it, or between an area and its members, as messages. */
export function areaProblems(spec: ConsumerSpec, others: readonly ConsumerSpec[]): readonly string[] {
  const byName = new Map([...others, spec].map((each) => [each.name, each]));
  if (pathOf(spec.parent ?? '', byName).includes(spec.name))
    return [
      spec.parent === spec.name
        ? 'a consumer cannot be its own area'
        : `${spec.parent} belongs to ${spec.name}: an area cannot be above itself`,
    ];
  const members = membersByArea([...byName.values()]);
  const problems: string[] = [];
  for (const name of pathOf(spec.parent ?? '', byName)) {
    const area = byName.get(name);
    for (const [resource, limit] of area?.hard ?? NOTHING)
      if ((spec.hard?.get(resource) ?? 0) > limit)
        problems.push(`hard of ${resource} exceeds hard of the area ${name}`);
    const reserved = totalReserved((members.get(name) ?? []).flatMap((member) => withMembers(member, members)));
    for (const [resource, amount] of reserved) {
      const limit = Math.min(area?.hard?.get(resource) ?? Infinity, area?.reserved?.get(resource) ?? Infinity);
      if (of(spec.reserved ?? NOTHING, resource) > 0 && amount > limit)
        problems.push(`the consumers of ${name} reserve more ${resource} than the area`);
    }
  }
  for (const member of withMembers(spec, members).slice(1))
    for (const [resource, limit] of spec.hard ?? NOTHING)
      if ((member.hard?.get(resource) ?? 0) > limit)
        problems.push(`hard of ${resource} is below that of its consumer ${member.name}`);
  return problems;
}

/** A consumer and all that belong to it, the consumer first. */
function withMembers(spec: ConsumerSpec, members: ReadonlyMap<string, readonly ConsumerSpec[]>): ConsumerSpec[] {
  return [spec, ...(members.get(spec.name) ?? []).flatMap((member) => withMembers(member, members))];
}
