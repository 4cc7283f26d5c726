import { fittingShapes, type FittingShape, type Place, type Shape } from '../../quota/index.js';
import { of } from '../../manifests/quantities.js';
import { formatQuantity } from '../../manifests/quantity.js';
import type { NodeInventory } from '../../gpu/node-inventory.js';
import type { Node } from '../../kube/node.js';
import type { ClusterPod } from './cluster-pod.js';
import { fitsOnGpus, type GpuRequest } from './gpu-holding.js';

/** A node with the GPUs that its agent reports. */
export interface ClusterNode extends Node {
  readonly inventory: NodeInventory | null;
}

/** A node admits so many pods; counted as a resource of each shape. */
const POD_SLOTS = 'pods';

interface PodShape extends Shape {
  readonly requests: readonly GpuRequest[];
  readonly waits: number;
}

/**
 * How often the requests that pods make still fit on the nodes that accept pods: at most `most` shapes, those of
 * waiting pods first, then the most frequent ones. Selectors are not looked at. On nodes with an agent, GPUs are placed
 * as the agent would place them.
 */
export function clusterShapes(
  nodes: readonly ClusterNode[],
  pods: readonly ClusterPod[],
  most: number,
): readonly FittingShape[] {
  const shapes = shapesOf(pods).slice(0, most);
  const requests = new Map(shapes.map(({ name, requests: asked }) => [name, asked]));
  return fittingShapes(
    nodes.filter(({ takesPods }) => takesPods).map((node) => placeOf(node, pods, requests)),
    shapes,
  );
}

function placeOf(
  { name, allocatable, podSlots, inventory }: ClusterNode,
  pods: readonly ClusterPod[],
  requests: ReadonlyMap<string, readonly GpuRequest[]>,
): Place {
  const staying = pods.filter(({ node, isLeaving }) => node === name && !isLeaving);
  const free = new Map([...allocatable, [POD_SLOTS, podSlots - staying.length]]);
  for (const { uses } of staying)
    for (const [resource, amount] of uses) free.set(resource, of(free, resource) - amount);
  if (inventory === null) return { name, free };
  const holdings = staying.map(({ gpus }) => gpus);
  const holds = (shape: Shape, copies: number): boolean => {
    const asked = Array.from({ length: copies }, () => requests.get(shape.name) ?? []).flat();
    return fitsOnGpus(inventory, { requests: asked, indexes: null }, holdings);
  };
  return { name, free, holds };
}

function shapesOf(pods: readonly ClusterPod[]): readonly PodShape[] {
  const known = new Map<string, PodShape>();
  for (const { uses, gpus, node, isLeaving } of pods) {
    if (isLeaving || uses.size === 0) continue;
    const { requests } = gpus;
    const parts = requests.length > 1 ? ` in ${requests.length} containers` : '';
    const name = `${[...uses]
      .map(([resource, amount]) => `${resource}=${formatQuantity(resource, amount)}`)
      .sort()
      .join(' ')}${parts}`;
    const shape = known.get(name) ?? { name, uses: new Map([...uses, [POD_SLOTS, 1]]), count: 0, waits: 0, requests };
    known.set(name, { ...shape, count: shape.count + 1, waits: shape.waits + (node === null ? 1 : 0) });
  }
  return [...known.values()].sort((a, b) => b.waits - a.waits || b.count - a.count || (a.name < b.name ? -1 : 1));
}
