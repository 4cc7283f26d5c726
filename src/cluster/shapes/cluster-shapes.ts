import { FittingCounts, type FittingShape, type Place, type Shape } from '../../quota/index.js';
import { of } from '../../manifests/quantities.js';
import { Turn } from '../../host/turn.js';
import { formatQuantity } from '../../manifests/quantity.js';
import { inventoryOf, type NodeInventory } from '../../gpu/node-inventory.js';
import { readNode, type Node } from '../../kube/node.js';
import { copiesOnGpus, type GpuHolding, type GpuRequest } from './gpu-holding.js';
import type { ShapedPod } from './shaped-pod.js';

/** A node with the GPUs that its agent reports. */
export interface ClusterNode extends Node {
  readonly inventory: NodeInventory | null;
}

/** Null for an object that is no node. */
export function readClusterNode(object: unknown): ClusterNode | null {
  const node = readNode(object);
  return node === null ? null : { ...node, inventory: inventoryOf(node.annotations) };
}

/** A node admits so many pods; counted as a resource of each shape. */
const POD_SLOTS = 'pods';

interface PodShape extends Shape {
  readonly requests: readonly GpuRequest[];
  count: number;
  waits: number;
}

/**
 * How often the requests that pods make still fit on the nodes that accept pods: at most `most` shapes, those of
 * waiting pods first, then the most frequent ones. Selectors are not looked at. On nodes with an agent, GPUs are placed
 * as the agent would place them. Takes seconds for thousands of nodes, in short turns of the event loop.
 */
export async function clusterShapes(
  nodes: readonly ClusterNode[],
  pods: readonly ShapedPod[],
  most: number,
): Promise<readonly FittingShape[]> {
  const turn = new Turn();
  const known = new Map<string, PodShape>();
  const staying = new Map<string | null, ShapedPod[]>();
  for (const pod of pods) {
    if (turn.isOver()) await turn.pass();
    if (pod.isLeaving) continue;
    count(known, pod);
    const others = staying.get(pod.node);
    if (others === undefined) staying.set(pod.node, [pod]);
    else others.push(pod);
  }
  const shapes = inOrder(known.values()).slice(0, most);
  const requests = new Map(shapes.map(({ name, requests: asked }) => [name, asked]));
  // Placing on GPUs takes long, and most nodes are like others.
  const likeOthers = new Map<string, Map<string, number>>();
  const counts = new FittingCounts(shapes);
  for (const node of nodes) {
    if (!node.takesPods) continue;
    counts.add(placeOf(node, staying.get(node.name) ?? [], requests, likeOthers));
    await turn.pass();
  }
  return counts.all;
}

function placeOf(
  { name, allocatable, podSlots, inventory }: ClusterNode,
  staying: readonly ShapedPod[],
  requests: ReadonlyMap<string, readonly GpuRequest[]>,
  known: Map<string, Map<string, number>>,
): Place {
  const free = new Map([...allocatable, [POD_SLOTS, podSlots - staying.length]]);
  for (const { uses } of staying)
    for (const [resource, amount] of uses) free.set(resource, of(free, resource) - amount);
  if (inventory === null) return { name, free };
  const holdings = staying.map(({ gpus }) => gpus);
  let equal: Map<string, number> | null = null;
  const copies = (shape: Shape, limit: number): number => {
    equal ??= entryOf(known, stateOf(inventory, holdings));
    const key = `${limit} ${shape.name}`;
    const found = equal.get(key) ?? copiesOnGpus(inventory, requests.get(shape.name) ?? [], holdings, limit);
    equal.set(key, found);
    return found;
  };
  return { name, free, copies };
}

function entryOf(known: Map<string, Map<string, number>>, state: string): Map<string, number> {
  const found = known.get(state) ?? new Map<string, number>();
  known.set(state, found);
  return found;
}

/** Equal for nodes whose GPUs take the same requests. */
function stateOf({ gpus, topology }: NodeInventory, holdings: readonly GpuHolding[]): string {
  const parts = gpus.map(({ gpu: { index, model, memoryBytes, numaNode }, healthy, foreign }) => {
    return [index, model, memoryBytes, numaNode, healthy, foreign];
  });
  return JSON.stringify([parts, topology, holdings.map((holding) => JSON.stringify(holding)).sort()]);
}

function count(known: Map<string, PodShape>, { uses, gpus: { requests }, node }: ShapedPod): void {
  if (uses.size === 0) return;
  const parts = requests.length > 1 ? ` in ${requests.length} containers` : '';
  const gpus = Math.max(1, ...requests.map((request) => request.gpus ?? 1));
  const divided = gpus > 1 ? ` on ${gpus} GPUs each` : '';
  const name = `${[...uses]
    .map(([resource, amount]) => `${resource}=${formatQuantity(resource, amount)}`)
    .sort()
    .join(' ')}${parts}${divided}`;
  const shape = known.get(name) ?? { name, uses: new Map([...uses, [POD_SLOTS, 1]]), count: 0, waits: 0, requests };
  known.set(name, shape);
  shape.count += 1;
  if (node === null) shape.waits += 1;
}

function inOrder(shapes: Iterable<PodShape>): PodShape[] {
  return [...shapes].sort((a, b) => b.waits - a.waits || b.count - a.count || (a.name < b.name ? -1 : 1));
}
