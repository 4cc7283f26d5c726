import type { GpuSlot } from '../placement/slot.js';
import { isWhole } from '../placement/slot.js';
import { NVML_VALUE, type Level } from './level.js';
import { gpuCount, linksBetween, type Topology } from './topology.js';
import { buildTree, isLeaf, type TreeNode } from './tree.js';

/** Use of one GPU in the last sample. */
export interface GpuUsage {
  readonly pids: readonly number[];
  readonly usedMemoryBytes: number;
}

export interface GraphOptions {
  /**
   * Last sample of each position; without it every GPU shows no process and no used memory, like a new tree in the
   * original.
   */
  readonly usage?: readonly GpuUsage[];
  /** Adds data that the original's graph lacks: NVLinks of each GPU, its model, and whether it may be chosen. */
  readonly extended?: boolean;
}

/** The original uses an old name for the fourth level. */
const GRAPH_NAME: Readonly<Record<Level, string>> = {
  X: 'GPU',
  PIX: 'PIX',
  PXB: 'PXB',
  PHB: 'PHB',
  NODE: 'CPU',
  SYS: 'SYS',
};

/**
 * The tree as text, in the format of the original's PrintGraph: `ROOT:<free GPUs>`, then one line per node, depth
 * first, siblings in the order of (level, free GPUs, minor). Figures of a group are sums of the samples; its
 * allocatable figures are always 0, as in the original. `slots` are in topology order.
 */
export function printGraph(topology: Topology, slots: readonly GpuSlot[], options: GraphOptions = {}): string {
  if (slots.length !== gpuCount(topology)) throw new RangeError(`${slots.length} slots for ${gpuCount(topology)} GPUs`);
  const lines = [`ROOT:${slots.filter(isWhole).length}`];
  const walk = (nodes: readonly TreeNode[], depth: number): void => {
    for (const node of [...nodes].sort((a, b) => inOrder(slots, a, b))) {
      const text = isLeaf(node) ? leafText(topology, slots, node, options) : groupText(slots, node, options);
      lines.push(`${'|   '.repeat(depth)}|---${text}`);
      walk(node.children, depth + 1);
    }
  };
  walk(buildTree(topology), 0);
  return `${lines.join('\n')}\n`;
}

function leafText(topology: Topology, slots: readonly GpuSlot[], node: TreeNode, options: GraphOptions): string {
  const position = node.positions[0] as number;
  const slot = slots[position] as GpuSlot;
  const usage = options.usage?.[position] ?? { pids: [], usedMemoryBytes: 0 };
  const fields = [
    ...usageFields(usage.pids, usage.usedMemoryBytes, slot.gpu.memoryBytes),
    `allocatableCores: ${slot.freeCores}`,
    `allocatableMemory: ${slot.freeMemoryBytes}`,
    ...(options.extended === true ? extendedFields(topology, slots, position) : []),
  ];
  return `GPU${slot.gpu.index} (${fields.join(', ')})`;
}

function extendedFields(topology: Topology, slots: readonly GpuSlot[], position: number): string[] {
  const slot = slots[position] as GpuSlot;
  const links = slots.flatMap((other, at) => {
    const count = linksBetween(topology, position, at);
    return count > 0 ? [`GPU${other.gpu.index}:${count}`] : [];
  });
  return [`nvlinks: [${links.join(' ')}]`, `model: ${slot.gpu.model}`, `usable: ${slot.usable}`];
}

function groupText(slots: readonly GpuSlot[], node: TreeNode, options: GraphOptions): string {
  const sampled = options.usage === undefined ? [] : node.positions;
  const usages = sampled.map((position) => options.usage?.[position] ?? { pids: [], usedMemoryBytes: 0 });
  const fields = [
    `aval: ${available(slots, node)}`,
    ...usageFields(
      usages.flatMap((usage) => usage.pids),
      usages.reduce((sum, usage) => sum + usage.usedMemoryBytes, 0),
      sampled.reduce((sum, position) => sum + (slots[position] as GpuSlot).gpu.memoryBytes, 0),
    ),
    'allocatableCores: 0',
    'allocatableMemory: 0',
  ];
  return `${GRAPH_NAME[node.level]} (${fields.join(', ')})`;
}

function usageFields(pids: readonly number[], usedMemoryBytes: number, totalMemoryBytes: number): string[] {
  return [`pids: [${pids.join(' ')}]`, `usedMemory: ${usedMemoryBytes}`, `totalMemory: ${totalMemoryBytes}`];
}

function available(slots: readonly GpuSlot[], node: TreeNode): number {
  return node.positions.filter((position) => isWhole(slots[position] as GpuSlot)).length;
}

function inOrder(slots: readonly GpuSlot[], a: TreeNode, b: TreeNode): number {
  // A GPU always counts as available to itself: the original never clears a leaf's own mark.
  const free = (node: TreeNode) => (isLeaf(node) ? 1 : available(slots, node));
  const minor = (node: TreeNode) => (isLeaf(node) ? (slots[node.positions[0] as number] as GpuSlot).gpu.minor : 0);
  return (
    NVML_VALUE[a.level] - NVML_VALUE[b.level] ||
    free(a) - free(b) ||
    minor(a) - minor(b) ||
    (a.positions[0] as number) - (b.positions[0] as number)
  );
}
