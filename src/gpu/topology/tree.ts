import { LEVELS, NVML_VALUE, type Level } from './level.js';
import { gpuCount, levelBetween, type Topology } from './topology.js';

/** A node of the PCIe tree: a GPU (level `X`, one position, no children) or a group of several GPUs. */
export interface TreeNode {
  readonly level: Level;
  /** Every GPU below, in ascending order. */
  readonly positions: readonly number[];
  readonly children: readonly TreeNode[];
}

/**
 * The PCIe tree of a machine, as the original builds it: one leaf per GPU, and above them, level by level, one node for
 * each group of GPUs that this level joins. A level that joins nothing new has no node, so the depth varies. Returns
 * the nodes below the root: empty without GPUs, one leaf for one GPU, else the node that joins all.
 *
 * If a matrix contradicts itself (A near B, B near C, A far from C) the nearest path counts, so the groups of one level
 * never overlap and the tree contains every GPU exactly once.
 */
export function buildTree(topology: Topology): readonly TreeNode[] {
  const positions = Array.from({ length: gpuCount(topology) }, (_, position) => position);
  let tops: readonly TreeNode[] = positions.map((position) => ({
    level: 'X' as const,
    positions: [position],
    children: [],
  }));
  for (const level of LEVELS.slice(1)) tops = joinAt(topology, tops, level);
  return tops;
}

/** True for a GPU, false for a group. */
export function isLeaf(node: TreeNode): boolean {
  return node.level === 'X';
}

/** Joins the nodes that `level` or a nearer one connects; single nodes are passed on unchanged. */
function joinAt(topology: Topology, nodes: readonly TreeNode[], level: Level): readonly TreeNode[] {
  const groups: TreeNode[][] = [];
  for (const node of nodes) {
    const joined = groups.filter((group) => group.some((other) => connected(topology, node, other, level)));
    const first = joined[0];
    if (first === undefined) {
      groups.push([node]);
      continue;
    }
    first.push(node);
    for (const other of joined.slice(1)) {
      first.push(...other);
      groups.splice(groups.indexOf(other), 1);
    }
  }
  return groups
    .map((group) => (group.length === 1 ? (group[0] as TreeNode) : parentOf(group, level)))
    .sort(byLowestPosition);
}

function connected(topology: Topology, a: TreeNode, b: TreeNode, level: Level): boolean {
  return a.positions.some((x) =>
    b.positions.some((y) => NVML_VALUE[levelBetween(topology, x, y)] <= NVML_VALUE[level]),
  );
}

function parentOf(group: readonly TreeNode[], level: Level): TreeNode {
  return {
    level,
    positions: group.flatMap((node) => node.positions).sort((a, b) => a - b),
    children: [...group].sort(byLowestPosition),
  };
}

function byLowestPosition(a: TreeNode, b: TreeNode): number {
  return (a.positions[0] ?? 0) - (b.positions[0] ?? 0);
}
