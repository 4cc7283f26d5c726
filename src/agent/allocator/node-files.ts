import { join } from 'node:path';
import { deviceLinks } from './device-links.js';
import type { NodeFiles } from './ports.js';
import type { DeviceNode } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { PartitionableGpu } from '../../gpu/mig-partition.js';
import type { Inventory } from '../gpus/index.js';
import { makeHarmlessNode } from '../../host/device-nodes.js';
import type { Log } from '../../host/log.js';
import { findNvidiaNodes, hostDevices, migInstanceNodes } from '../../host/nvidia-nodes.js';

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
 * starts. Listed at each request, because some nodes are created only when the driver is first used; systemd's links
 * to them are made then.
 */
export function deviceFiles(
  hostRoot: string,
  extraNodes: readonly DeviceNode[],
  libraryMounts: NodeFiles['libraryMounts'],
  log: Log,
  capabilities?: string,
): NodeFiles {
  const devices = hostDevices(hostRoot);
  const link = deviceLinks(devices, log);
  const linked = (nodes: readonly DeviceNode[]): readonly DeviceNode[] => {
    link(nodes);
    return nodes;
  };
  return {
    gpuNodes: (gpu) =>
      linked([gpuNodeName(gpu), ...instanceNodes(gpu, capabilities)].map((name) => nodeAt('/dev', name))),
    commonNodes: () => linked([...findNvidiaNodes(devices).found.map((name) => nodeAt('/dev', name)), ...extraNodes]),
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
