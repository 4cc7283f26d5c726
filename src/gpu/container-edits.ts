import { DEVICE_KEY } from './annotations.js';
import type { Gpu } from './gpu.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from './resources.js';

/** Where things stand inside a container. Programs and the original's library look for them there. */
export const CONTAINER_LIBRARY_DIRECTORY = '/usr/local/nvidia';
export const CONTAINER_SLICE_DIRECTORY = '/etc/vcuda';

/** A device node: where it is on the node, and what the container sees. */
export interface DeviceNode {
  readonly hostPath: string;
  readonly containerPath: string;
}

/** A bind mount, read-only unless it says otherwise. */
export interface BindMount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly writable: boolean;
}

/** What the kubelet is told to change in a container: the answer to Allocate, in this project's words. */
export interface ContainerEdits {
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  readonly deviceNodes: readonly DeviceNode[];
  readonly annotations: Readonly<Record<string, string>>;
  /** Names of CDI devices that the runtime looks up by itself. */
  readonly cdiDevices: readonly string[];
}

export const NO_EDITS: ContainerEdits = {
  environment: {},
  mounts: [],
  deviceNodes: [],
  annotations: {},
  cdiDevices: [],
};

export interface SliceEdits {
  readonly gpus: readonly Gpu[];
  readonly cores: number;
  /** Null where the memory is not known yet; the annotation is then left out. */
  readonly memoryBytes: number | null;
  /** The nodes of these GPUs, and those that every GPU container needs (`/dev/nvidiactl`, ...). */
  readonly gpuNodes: readonly DeviceNode[];
  readonly commonNodes: readonly DeviceNode[];
  /** The driver's libraries, or the control libraries before them; none where the node mirrors no libraries. */
  readonly libraryMounts: readonly BindMount[];
  /** Host directory of the allocation, to be seen as /etc/vcuda, and the files below it that the container may write. */
  readonly sliceDirectory: string;
  readonly writableFiles: readonly string[];
}

/** The edits for a container that got these GPUs; tkestack gpu-manager's answer, so that images made for it run unchanged. */
export function sliceEdits(slice: SliceEdits): ContainerEdits {
  return {
    environment: {
      LD_LIBRARY_PATH: `${CONTAINER_LIBRARY_DIRECTORY}/lib64`,
      NVIDIA_VISIBLE_DEVICES: slice.gpus.map((gpu) => gpu.uuid).join(','),
    },
    mounts: [
      ...slice.libraryMounts,
      { hostPath: slice.sliceDirectory, containerPath: CONTAINER_SLICE_DIRECTORY, writable: false },
      ...slice.writableFiles.map((name) => ({
        hostPath: `${slice.sliceDirectory}/${name}`,
        containerPath: `${CONTAINER_SLICE_DIRECTORY}/${name}`,
        writable: true,
      })),
    ],
    deviceNodes: [...slice.gpuNodes, ...slice.commonNodes],
    annotations: {
      [CORE_RESOURCE]: String(slice.cores),
      ...(slice.memoryBytes === null ? {} : { [MEMORY_RESOURCE]: String(slice.memoryBytes) }),
      [DEVICE_KEY]: slice.gpuNodes.map((node) => node.containerPath).join(','),
    },
    cdiDevices: [],
  };
}
