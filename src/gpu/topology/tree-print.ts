import type { Topology } from './topology.js';
import { buildTree, isLeaf, type TreeNode } from './tree.js';

/**
 * The PCIe tree of a machine in the layout of the original's graph, with only the names of levels, and of GPUs as
 * `name` returns them.
 */
export function printTree(topology: Topology, name: (position: number) => string): string {
  const lines = (nodes: readonly TreeNode[], depth: number): string[] =>
    nodes.flatMap((node) => [
      `${'|   '.repeat(depth)}|---${isLeaf(node) ? name(node.positions[0] as number) : node.level}\n`,
      ...lines(node.children, depth + 1),
    ]);
  return lines(buildTree(topology), 0).join('');
}
