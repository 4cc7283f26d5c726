import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeFiles } from './allocator/ports.js';
import type { DeviceNode } from '../gpu/container-edits.js';
import type { Gpu } from '../gpu/gpu.js';
import { makeHarmlessNode } from '../host/device-nodes.js';
import { findNvidiaNodes } from '../host/nvidia-nodes.js';

/** Device nodes of a simulated machine besides those of its GPUs. */
const SIMULATED_NODES = ['nvidiactl', 'nvidia-uvm'];

const gpuNodeName = (gpu: Gpu): string => `nvidia${gpu.minor}`;

function nodeAt(hostDirectory: string, name: string): DeviceNode {
  return { hostPath: join(hostDirectory, name), containerPath: `/dev/${name}` };
}

/**
 * The device nodes of real GPUs, in the host's /dev if that is mounted, since a container's own /dev is filled when it
 * starts. Listed at each request, because some nodes are created only when the driver is first used.
 */
export function deviceFiles(
  hostRoot: string,
  extraNodes: readonly DeviceNode[],
  libraryMounts: NodeFiles['libraryMounts'],
): NodeFiles {
  const mounted = join(hostRoot, 'dev');
  const devices = existsSync(mounted) ? mounted : '/dev';
  return {
    gpuNode: (gpu) => nodeAt('/dev', gpuNodeName(gpu)),
    commonNodes: () => [...findNvidiaNodes(devices).found.map((name) => nodeAt('/dev', name)), ...extraNodes],
    libraryMounts,
  };
}

/** Device nodes without function in `directory`, for simulated GPUs. */
export async function simulatedDeviceFiles(
  directory: string,
  gpus: readonly Gpu[],
  extraNodes: readonly DeviceNode[],
  libraryMounts: NodeFiles['libraryMounts'],
): Promise<NodeFiles> {
  for (const name of [...SIMULATED_NODES, ...gpus.map(gpuNodeName)]) await makeHarmlessNode(join(directory, name));
  return {
    gpuNode: (gpu) => nodeAt(directory, gpuNodeName(gpu)),
    commonNodes: () => [...SIMULATED_NODES.map((name) => nodeAt(directory, name)), ...extraNodes],
    libraryMounts,
  };
}
