import { demandOf, type Demand } from '../../../src/cluster/placement/demand.js';
import type { NodeGpu, NodeShape } from '../../../src/cluster/placement/node.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../../src/gpu/resources.js';
import { uniformTopology, type Topology } from '../../../src/gpu/topology/topology.js';

export const BLOCK = MEMORY_BLOCK_BYTES;

/** A GPU of so many blocks; index, minor number and UUID follow from its position. */
export function nodeGpu(index: number, blocks: number, differing: Partial<NodeGpu> = {}): NodeGpu {
  const memoryBytes = blocks * BLOCK;
  const gpu = {
    index,
    minor: index,
    uuid: `GPU-${index}`,
    pciBusId: `0000:0${index}:00.0`,
    model: 'T4',
    memoryBytes,
    numaNode: null,
  };
  return { gpu, usable: true, foreign: false, freeCores: CORES_PER_GPU, freeMemoryBytes: memoryBytes, ...differing };
}

/** A node with GPUs of so many blocks each, all idle, and more CPU and memory of the host than any pod requests. */
export function node(name: string, blocks: readonly number[], differing: Partial<NodeShape> = {}): NodeShape {
  return {
    name,
    labels: {},
    gpus: blocks.map((of, index) => nodeGpu(index, of)),
    topology: uniformTopology(blocks.length, 'PHB') satisfies Topology,
    cpuMilli: 96_000,
    hostMemoryBytes: 384 * 2 ** 30,
    ...differing,
  };
}

/** A pod whose containers request `[cores, blocks]` each. */
export function pod(
  containers: readonly (readonly [cores: number, blocks: number])[],
  differing: Partial<Omit<Demand, 'key' | 'gpuKey'>> = {},
): Demand {
  return demandOf({
    containers: containers.map(([cores, blocks], container) => ({ container, cores, memoryBytes: blocks * BLOCK })),
    ...differing,
  });
}
