import { GPU_MODEL_LABEL, GPU_PRODUCT_LABEL, NODE_INVENTORY_KEY } from '../gpu/annotations.js';
import type { NodeGpu, NodeShape } from './placement/node.js';
import { MAX_GPUS, decodeInventory, type NodeInventory } from '../gpu/node-inventory.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { uniformTopology, type Topology } from '../gpu/topology/topology.js';
import type { Node } from '../kube/node.js';

export interface ShapeResult {
  readonly shape: NodeShape;
  /** Why the node's inventory annotation is invalid; null if it is valid or absent. */
  readonly inventoryProblem: string | null;
}

/**
 * Reads nodes. The agent's inventory lists the GPUs. For a node without one (an older agent), equal GPUs are assumed:
 * its capacity of `vcuda-core` divided by 100, with equal parts of its memory blocks, as in the original's extender,
 * and of the model that its labels name. Where the label of NVIDIA's GPU feature discovery says another size, the GPUs
 * are unequal: all but one have that size, so that the last one has the largest possible size.
 *
 * Nodes with equal topologies share one topology object, so that placement derives its tables once.
 */
export class NodeShapes {
  readonly #topologies = new Map<string, Topology>();

  read(node: Node): ShapeResult {
    const { name, labels, annotations, allocatable } = node;
    const amount = (resource: string): number => allocatable.get(resource) ?? 0;
    const host = {
      name,
      labels,
      cpuMilli: amount('cpu'),
      hostMemoryBytes: amount('memory'),
    };
    const text = annotations[NODE_INVENTORY_KEY];
    // The annotation of a removed agent stays on the node, but its resources disappear.
    const cores = amount(CORE_RESOURCE);
    const fromCapacity = () => this.#fromCapacity(cores, amount(MEMORY_RESOURCE), labels);
    if (cores >= CORES_PER_GPU && text !== undefined) {
      const decoded = decodeInventory(text);
      if (decoded.ok)
        return {
          shape: {
            ...host,
            ...this.#fromInventory(decoded.inventory),
            allowsResize: decoded.inventory.allowsResize,
            suspendFactor: decoded.inventory.suspendFactor,
          },
          inventoryProblem: null,
        };
      return {
        shape: { ...host, ...fromCapacity() },
        inventoryProblem: decoded.reason,
      };
    }
    return { shape: { ...host, ...fromCapacity() }, inventoryProblem: null };
  }

  /**
   * Reads a node that does not exist yet. Its inventory may be a copy of another node's, with the UUIDs and the free
   * room of that node. GPUs that are not usable there are left out of its capacity too, and stay so.
   */
  readTemplate(node: Node): NodeShape {
    const { shape } = this.read(node);
    return { ...shape, gpus: shape.gpus.map(asNew) };
  }

  #fromInventory(inventory: NodeInventory): { gpus: NodeGpu[]; topology: Topology } {
    const gpus = inventory.gpus.map(({ gpu, healthy, foreign, freeCores, freeMemoryBytes, offered }): NodeGpu => ({
      gpu,
      usable: healthy,
      foreign,
      freeCores,
      freeMemoryBytes,
      offered,
    }));
    return { gpus, topology: this.#shared(inventory.topology) };
  }

  #fromCapacity(cores: number, blocks: number, labels: Node['labels']): { gpus: NodeGpu[]; topology: Topology } {
    const count = Math.min(MAX_GPUS, Math.floor(cores / CORES_PER_GPU));
    const model = labels[GPU_PRODUCT_LABEL] ?? labels[GPU_MODEL_LABEL] ?? '';
    const gpus = assumedBlocks(count, blocks, labels[DISCOVERED_MEMORY_LABEL]).map((each, index): NodeGpu => {
      const memoryBytes = each * MEMORY_BLOCK_BYTES;
      const gpu = { index, minor: index, uuid: '', pciBusId: '', model, memoryBytes, numaNode: null };
      return { gpu, usable: true, foreign: false, freeCores: CORES_PER_GPU, freeMemoryBytes: memoryBytes };
    });
    return { gpus, topology: this.#shared(uniformTopology(count)) };
  }

  #shared(topology: Topology): Topology {
    const key = JSON.stringify([topology.levels, topology.nvlinks]);
    const known = this.#topologies.get(key);
    if (known !== undefined) return known;
    this.#topologies.set(key, topology);
    return topology;
  }
}

/** Mebibytes of a GPU of the node, written by NVIDIA's GPU feature discovery: of one kind where there are several. */
const DISCOVERED_MEMORY_LABEL = 'nvidia.com/gpu.memory';

/** Memory blocks of GPUs of which only the sum is known, and perhaps the size of one kind. */
function assumedBlocks(count: number, blocks: number, discoveredMib: string | undefined): readonly number[] {
  const equal = count === 0 ? 0 : Math.floor(blocks / count);
  const discovered = Math.floor((Number(discoveredMib) * 2 ** 20) / MEMORY_BLOCK_BYTES);
  const rest = blocks - (count - 1) * discovered;
  // Equal GPUs may lose a block each by rounding.
  const areEqual = count < 2 || !(Math.abs(discovered - equal) > 1) || discovered < 1 || discovered > blocks;
  if (areEqual) return Array<number>(count).fill(equal);
  if (rest > discovered) return [...Array<number>(count - 1).fill(discovered), rest];
  return [discovered, ...Array<number>(count - 1).fill(Math.floor((blocks - discovered) / (count - 1)))];
}

function asNew({ gpu, usable }: NodeGpu): NodeGpu {
  const { instance } = gpu;
  const unnamed = { ...gpu, uuid: '', ...(instance && { instance: { ...instance, parentUuid: '' } }) };
  return { gpu: unnamed, usable, foreign: false, freeCores: CORES_PER_GPU, freeMemoryBytes: gpu.memoryBytes };
}
