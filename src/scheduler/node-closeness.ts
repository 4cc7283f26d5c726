import type { ClusterNode } from '../cluster/placement/node.js';

/**
 * Labels that say which nodes are close to each other, the closest first: nodes whose GPUs are connected by NVLink
 * between nodes, then racks, blocks and zones as Kubernetes, Kueue and clouds name them.
 */
const LEVELS: readonly (readonly string[])[] = [
  ['nvidia.com/gpu.clique'],
  ['topology.kubernetes.io/rack', 'cloud.provider.com/topology-rack'],
  ['topology.kubernetes.io/block', 'cloud.provider.com/topology-block'],
  ['topology.kubernetes.io/zone'],
];

/** Nodes with one value of a level's label. */
interface Domain {
  readonly nodes: ClusterNode[];
  /** How many members of the group are on its nodes already, on those that are full too. */
  others: number;
  /** How many more members fit on its nodes. */
  room: number;
}

/** What the choice for one member of a group depends on. */
export interface GroupNeeds {
  /** The nodes of the members that have one, one entry for each member. */
  readonly others: readonly ClusterNode[];
  /** How many members have no node yet, this one included; Infinity if the size of the group is unknown. */
  readonly missing: number;
  /** How many members fit on a node. */
  readonly roomOn: (node: ClusterNode) => number;
}

/**
 * Selects the nodes for a member of a group, among those on which it fits: the smallest domain of the closest level
 * that holds the members with a node and has room for all others; in it, or where there is none, the domains with the
 * most members and then with the most room, level by level.
 */
export function closest(fits: readonly ClusterNode[], needs: GroupNeeds): readonly ClusterNode[] {
  const levels = LEVELS.filter((level) => fits.some((node) => valueAt(level, node) !== null));
  for (const [at, level] of levels.entries()) {
    const whole = domainsOf(level, fits, needs).filter(
      ({ others, room }) => others === needs.others.length && room >= needs.missing,
    );
    const least = Math.min(...whole.map(({ room }) => room));
    const smallest = whole.filter(({ room }) => room === least).flatMap(({ nodes }) => nodes);
    if (smallest.length > 0) return largest(smallest, levels.slice(0, at), needs);
  }
  return largest(fits, levels, needs);
}

/** The domains with the most members, of these the ones with the most room, from the farthest level to the closest. */
function largest(
  fits: readonly ClusterNode[],
  levels: readonly (readonly string[])[],
  needs: GroupNeeds,
): readonly ClusterNode[] {
  return levels.reduceRight<readonly ClusterNode[]>((nodes, level) => {
    const domains = domainsOf(level, nodes, needs);
    const others = Math.max(...domains.map((domain) => domain.others));
    const near = domains.filter((domain) => domain.others === others);
    const room = Math.max(...near.map((domain) => domain.room));
    return near.filter((domain) => domain.room === room).flatMap((domain) => domain.nodes);
  }, fits);
}

/** A node without the label is a domain of its own. */
function domainsOf(
  level: readonly string[],
  fits: readonly ClusterNode[],
  { others, roomOn }: GroupNeeds,
): readonly Domain[] {
  const domains = new Map<string | ClusterNode, Domain>();
  for (const node of fits) {
    const key = valueAt(level, node) ?? node;
    const domain = domains.get(key) ?? { nodes: [], others: 0, room: 0 };
    domain.nodes.push(node);
    domain.room += roomOn(node);
    domains.set(key, domain);
  }
  for (const node of others) {
    const domain = domains.get(valueAt(level, node) ?? node);
    if (domain !== undefined) domain.others += 1;
  }
  return [...domains.values()];
}

/** The value of a level's label on a node; null without one. */
function valueAt(level: readonly string[], { shape }: ClusterNode): string | null {
  for (const label of level) {
    const value = shape.labels[label];
    if (value !== undefined) return value;
  }
  return null;
}
