import type { Demand, GroupSpec, Mode } from '../../src/quota/index.js';

/** A forest of binary trees: eight levels each, workloads only in the groups of the last one. */
const TREE_GROUPS = 250;
const FIRST_LEAF = 127;
export const DEPTH = 8;
/** Keys of every group, all of which every workload charges. */
export const KEYS = ['limits.cpu', 'limits.memory', 'requests.nvidia.com/gpu', 'requests.nvidia.com/gpu.A100'] as const;

export interface World {
  /** Parents before their children. */
  readonly groups: readonly GroupSpec[];
  /** Names of the groups that have workloads. */
  readonly leaves: readonly string[];
}

/**
 * `count` groups with room for `workloads`, ten percent more than they need. Elastic groups below the roots lend all
 * they have, so that every decision reaches the root and every charge affects all levels.
 */
export function worldOf(count: number, workloads: number, mode: Mode): World {
  const leavesBelow = leafCounts();
  const leafTotal = (count / TREE_GROUPS) * (leavesBelow[0] as number);
  const perLeaf = Math.ceil((1.1 * workloads) / leafTotal);
  const groups = Array.from({ length: count }, (_, index): GroupSpec => {
    const [tree, node] = [Math.floor(index / TREE_GROUPS), index % TREE_GROUPS];
    const pods = 2 * perLeaf * (leavesBelow[node] as number);
    return {
      name: nameOf(tree, node),
      parent: node === 0 ? '' : nameOf(tree, (node - 1) >> 1),
      mode: node === 0 ? 'carved' : mode,
      hard: { [KEYS[0]]: pods, [KEYS[1]]: `${4 * pods}Gi`, [KEYS[2]]: pods, [KEYS[3]]: pods },
    };
  });
  return { groups, leaves: groups.filter((_, index) => index % TREE_GROUPS >= FIRST_LEAF).map(({ name }) => name) };
}

/** The workload of that number: two pods of a common size, in a group like any other. */
export function demandOf(world: World, index: number): Demand {
  const limits = { cpu: index % 3 === 0 ? '500m' : '1', memory: index % 2 === 0 ? '1Gi' : '3Gi', 'nvidia.com/gpu': 1 };
  return {
    workload: { kind: 'Deployment.apps', namespace: `team-${index % 977}`, name: `service-${index}` },
    // A prime far from the number of leaves: neighbours in time are not neighbours in the tree.
    group: world.leaves[(index * 7919) % world.leaves.length] as string,
    types: { gpu: 'A100' },
    podSets: [{ count: 2, limits }],
  };
}

function nameOf(tree: number, node: number): string {
  return `t${tree}-g${node}`;
}

/** For every node of a tree, the number of leaves in its subtree. */
function leafCounts(): readonly number[] {
  const counts = new Array<number>(TREE_GROUPS).fill(0);
  for (let node = TREE_GROUPS - 1; node >= 0; node--) {
    if (node >= FIRST_LEAF) counts[node] = 1;
    if (node > 0) counts[(node - 1) >> 1] = (counts[(node - 1) >> 1] as number) + (counts[node] as number);
  }
  return counts;
}
