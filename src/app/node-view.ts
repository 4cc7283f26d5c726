import type { Allocator } from '../allocator/allocator.js';
import { printGraph } from '../core/topology/graph.js';
import { slots } from '../core/ledger/state.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../core/resources.js';
import type { ContainerUsage, NodeView } from '../display/view.js';
import type { SliceObservation } from '../vgpu/observation.js';

export interface NodeViewOptions {
  readonly nodeName: string;
  readonly version: string;
  readonly allocator: Allocator;
  /** What the containers do. */
  readonly observed: () => readonly SliceObservation[];
  readonly notReady: () => readonly string[];
}

/** The display's view of the running agent: who holds what from the ledger, what is used from the vGPU manager. */
export function nodeView(options: NodeViewOptions): NodeView {
  const { allocator } = options;
  return {
    nodeName: options.nodeName,
    version: options.version,
    graph: () => printGraph(allocator.state.node.topology, slots(allocator.state)),
    containers: () => containers(allocator, options.observed()),
    notReady: options.notReady,
  };
}

function containers(allocator: Allocator, observed: readonly SliceObservation[]): ContainerUsage[] {
  const gpus = new Map(allocator.state.node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
  const slices = new Map(observed.map((slice) => [slice.allocation, slice]));
  return [...allocator.state.allocations.values()].flatMap((allocation) => {
    const devices = allocation.parts.flatMap((part) => {
      const gpu = gpus.get(part.gpuUuid);
      if (gpu === undefined) return [];
      const { usedPercent = 0, usedMemoryBytes = 0, pids = [] } = slices.get(allocation.id)?.devices.find(({ gpuUuid }) => gpuUuid === gpu.uuid) ?? {};
      return [{ gpuIndex: gpu.index, pciBusId: gpu.pciBusId, memoryBytes: gpu.memoryBytes, usedPercent, usedMemoryBytes, pids }];
    });
    const requestedCores = allocation.parts.reduce((sum, part) => sum + part.coreIds.length, 0);
    const blocks = allocation.parts.reduce((sum, part) => sum + part.memoryIds.length, 0);
    const whole = blocks === 0 && requestedCores >= CORES_PER_GPU;
    const requestedMemoryBytes = whole ? devices.reduce((sum, device) => sum + device.memoryBytes, 0) : blocks * MEMORY_BLOCK_BYTES;
    // Containers that hold the same devices do so in turn: what is used is the last one's.
    const idle = devices.map((device) => ({ ...device, usedPercent: 0, usedMemoryBytes: 0, pids: [] }));
    return allocation.owners.map((owner, at) => {
      const runs = at === allocation.owners.length - 1;
      return { ...owner, user: '', cluster: '', requestedCores, requestedMemoryBytes, devices: runs ? devices : idle };
    });
  });
}
