import { NVML_VALUE } from '../topology/level.js';
import { isLeaf, type TreeNode } from '../topology/tree.js';
import type { Choice } from './choice.js';

/**
 * The original's evaluator for one whole GPU: descends the PCIe tree, each time into the group with the fewest free
 * GPUs that has enough, and takes the lowest GPU. Groups with many free GPUs stay whole. Ignores memory. Null if too
 * few GPUs are free.
 */
export function originalFragment(tree: readonly TreeNode[], choice: Choice): readonly number[] | null {
  let taken: readonly number[] = choice.free;
  let nodes = tree;
  for (;;) {
    const next = best(nodes, choice, (node) => [available(node, choice).length]);
    if (next === null) break;
    taken = available(next, choice);
    nodes = next.children;
  }
  return take(taken, choice);
}

/**
 * The original's evaluator for several whole GPUs: the nearest level that joins enough free ones, in the group with the
 * fewest free GPUs; of these the lowest. Ignores memory. Null if too few GPUs are free.
 */
export function originalLink(tree: readonly TreeNode[], choice: Choice): readonly number[] | null {
  const groups: TreeNode[] = [];
  const collect = (node: TreeNode): void => {
    groups.push(node);
    node.children.forEach(collect);
  };
  tree.forEach(collect);
  const group = best(groups, choice, (node) => [NVML_VALUE[node.level], available(node, choice).length]);
  return take(group === null ? choice.free : available(group, choice), choice);
}

function available(node: TreeNode, choice: Choice): readonly number[] {
  return node.positions.filter((position) => choice.free.includes(position));
}

/** The group with the smallest keys that has enough free GPUs; then the fewest processes, then the lowest free GPU. */
function best(
  nodes: readonly TreeNode[],
  choice: Choice,
  keys: (node: TreeNode) => readonly number[],
): TreeNode | null {
  const processes = (node: TreeNode) =>
    node.positions.reduce((sum, position) => sum + (choice.processCounts[position] ?? 0), 0);
  const order = (node: TreeNode) => [...keys(node), processes(node), available(node, choice)[0] ?? 0];
  return nodes
    .filter((node) => !isLeaf(node) && available(node, choice).length >= choice.count)
    .filter((node) => choice.must.every((position) => node.positions.includes(position)))
    .reduce<TreeNode | null>(
      (found, node) => (found === null || isBefore(order(node), order(found)) ? node : found),
      null,
    );
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  for (const [at, key] of a.entries()) {
    const other = b[at] as number;
    if (key !== other) return key < other;
  }
  return false;
}

function take(from: readonly number[], choice: Choice): readonly number[] | null {
  if (from.length < choice.count) return null;
  const others = from.filter((position) => !choice.must.includes(position));
  return [...choice.must, ...others].slice(0, choice.count).sort((a, b) => a - b);
}
