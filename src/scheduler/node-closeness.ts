import type { ClusterNode } from './cluster/node.js';

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

/** The value of a level's label on a node; null without one. */
function valueAt(level: readonly string[], { shape }: ClusterNode): string | null {
  for (const label of level) {
    const value = shape.labels[label];
    if (value !== undefined) return value;
  }
  return null;
}

/**
 * Selects, among the nodes on which a member of a group fits, the nodes that share the closest level with the most
 * other members. For a first member, selects the nodes of the domain with the most such nodes, so that other members
 * can be placed there too.
 */
export function closest(fits: readonly ClusterNode[], others: readonly ClusterNode[]): readonly ClusterNode[] {
  let best = fits;
  for (const level of LEVELS) {
    const near = others.length > 0 ? others : best;
    const counts = new Map<string, number>();
    for (const node of near) {
      const value = valueAt(level, node);
      if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const count = (node: ClusterNode): number => counts.get(valueAt(level, node) ?? '') ?? 0;
    const most = best.reduce((largest, node) => Math.max(largest, count(node)), 0);
    if (most > 0) best = best.filter((node) => count(node) === most);
  }
  return best;
}
