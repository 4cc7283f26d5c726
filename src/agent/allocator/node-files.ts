import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeFiles } from './ports.js';
import type { DeviceNode } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { PartitionableGpu } from '../../gpu/mig-partition.js';
import type { Inventory } from '../gpus/index.js';
import { makeHarmlessNode } from '../../host/device-nodes.js';
import { findNvidiaNodes, migInstanceNodes } from '../../host/nvidia-nodes.js';

/** Device nodes of a simulated machine besides those of its GPUs. */
const SIMULATED_NODES = ['nvidiactl', 'nvidia-uvm'];

const gpuNodeName = (gpu: Gpu): string => `nvidia${gpu.minor}`;

function nodeAt(hostDirectory: string, name: string): DeviceNode {
  return { hostPath: join(hostDirectory, name), containerPath: `/dev/${name}` };
}

function instanceNodes({ minor, instance }: Gpu, capabilities?: string): readonly string[] {
  if (instance === undefined) return [];
  return migInstanceNodes(minor, instance.gpuInstance, instance.computeInstance, capabilities);
}

/** The driver numbers capabilities by GPU, GPU instance (15 of a GPU) and compute instance (8 of those). */
const FIRST_CAPABILITY = 3;
const CAPABILITIES_OF_INSTANCE = 9;
const INSTANCES_OF_GPU = 15;
const CAPABILITIES_OF_GPU = INSTANCES_OF_GPU * CAPABILITIES_OF_INSTANCE;

function simulatedNodes(gpu: Gpu): readonly string[] {
  if (gpu.instance === undefined) return [gpuNodeName(gpu)];
  const { gpuInstance, computeInstance } = gpu.instance;
  const access = FIRST_CAPABILITY + gpu.minor * CAPABILITIES_OF_GPU + gpuInstance * CAPABILITIES_OF_INSTANCE;
  return [gpuNodeName(gpu), `nvidia-caps/nvidia-cap${access}`, `nvidia-caps/nvidia-cap${access + 1 + computeInstance}`];
}

/** The nodes of all instances that a GPU can have. */
function possibleNodes({ gpu }: PartitionableGpu): readonly string[] {
  return Array.from({ length: INSTANCES_OF_GPU }, (_, gpuInstance) =>
    simulatedNodes({
      ...gpu,
      instance: { profile: '', parentUuid: gpu.uuid, gpuInstance, computeInstance: 0, multiprocessors: null },
    }),
  ).flat();
}

/**
 * The device nodes of real GPUs, in the host's /dev if that is mounted, since a container's own /dev is filled when it
 * starts. Listed at each request, because some nodes are created only when the driver is first used.
 */
export function deviceFiles(
  hostRoot: string,
  extraNodes: readonly DeviceNode[],
  libraryMounts: NodeFiles['libraryMounts'],
  capabilities?: string,
): NodeFiles {
  const mounted = join(hostRoot, 'dev');
  const devices = existsSync(mounted) ? mounted : '/dev';
  return {
    gpuNodes: (gpu) => [
      nodeAt('/dev', gpuNodeName(gpu)),
      ...instanceNodes(gpu, capabilities).map((name) => nodeAt('/dev', name)),
    ],
    commonNodes: () => [...findNvidiaNodes(devices).found.map((name) => nodeAt('/dev', name)), ...extraNodes],
    libraryMounts,
  };
}

/** Device nodes without function in `directory`, for simulated GPUs. */
export async function simulatedDeviceFiles(
  directory: string,
  { gpus, partitionable = [] }: Pick<Inventory, 'gpus' | 'partitionable'>,
  extraNodes: readonly DeviceNode[],
  libraryMounts: NodeFiles['libraryMounts'],
): Promise<NodeFiles> {
  const names = [...SIMULATED_NODES, ...gpus.flatMap(simulatedNodes), ...partitionable.flatMap(possibleNodes)];
  for (const name of new Set(names)) await makeHarmlessNode(join(directory, name));
  return {
    gpuNodes: (gpu) => simulatedNodes(gpu).map((name) => nodeAt(directory, name)),
    commonNodes: () => [...SIMULATED_NODES.map((name) => nodeAt(directory, name)), ...extraNodes],
    libraryMounts,
  };
}
