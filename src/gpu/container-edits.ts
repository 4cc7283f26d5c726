import { CONTAINER_DIRECTORY } from '../abi/vgpu-abi.js';
import { DEVICE_KEY } from './annotations.js';
import type { Gpu } from './gpu.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from './resources.js';

/** Paths inside a container. Programs and the original's library expect them. */
export const CONTAINER_LIBRARY_DIRECTORY = '/usr/local/nvidia';
export const CONTAINER_SLICE_DIRECTORY = CONTAINER_DIRECTORY;
/** Where the driver looks for MPS if a program of root has lost the variable that says so. */
export const CONTAINER_MPS_DIRECTORY = '/run/nvidia-mps';

/** A device node: its path on the node and in the container. */
export interface DeviceNode {
  readonly hostPath: string;
  readonly containerPath: string;
}

/** A bind mount, read-only by default. */
export interface BindMount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly writable: boolean;
}

/** The changes to a container that the kubelet applies: the answer to Allocate in this project's types. */
export interface ContainerEdits {
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  readonly deviceNodes: readonly DeviceNode[];
  readonly annotations: Readonly<Record<string, string>>;
  /** Names of CDI devices that the runtime resolves. */
  readonly cdiDevices: readonly string[];
}

export const NO_EDITS: ContainerEdits = {
  environment: {},
  mounts: [],
  deviceNodes: [],
  annotations: {},
  cdiDevices: [],
};

/**
 * The answer for a container's memory, the annotation that the original writes; it does not depend on the order of the
 * two requests.
 */
export function memoryEdits(memoryBytes: number): ContainerEdits {
  return { ...NO_EDITS, annotations: { [MEMORY_RESOURCE]: String(memoryBytes) } };
}

/** The edits of a claim unit's containers: the shared edits, and the edits of each device. */
export interface UnitEdits {
  readonly shared: Pick<ContainerEdits, 'environment' | 'mounts' | 'deviceNodes'>;
  /** Device nodes by position of the device in the unit. */
  readonly devices: readonly (readonly DeviceNode[])[];
}

export interface SliceEdits {
  /** Null where the answer for the memory names them. */
  readonly gpus: readonly Gpu[] | null;
  readonly cores: number;
  /** Null if the memory is not known yet; the annotation is then left out. */
  readonly memoryBytes: number | null;
  /** The nodes of each GPU, its own first, and those that every GPU container needs (`/dev/nvidiactl`, ...). */
  readonly gpuNodes: readonly (readonly DeviceNode[])[];
  readonly commonNodes: readonly DeviceNode[];
  /**
   * The driver's libraries, after the control libraries if the container is limited; empty if the node mirrors no
   * libraries.
   */
  readonly libraryMounts: readonly BindMount[];
  /** Host directory of the allocation, mounted as /etc/vcuda, and the files in it that the container may write. */
  readonly sliceDirectory: string;
  readonly writableFiles: readonly string[];
  /** Host folder through which its programs are clients of MPS; null or absent: they are none. */
  readonly mpsFolder?: string | null;
  /** Whether its programs are 32-bit programs; null if they may be of either kind. */
  readonly compat32: boolean | null;
}

/**
 * The edits for containers of a claim unit. A runtime that adds GPUs for NVIDIA_VISIBLE_DEVICES must add none: the
 * device nodes here are complete. `sliceDirectory` null: administrator access, without limits.
 */
export function unitEdits(
  unit: Pick<SliceEdits, 'gpuNodes' | 'commonNodes' | 'libraryMounts' | 'writableFiles'> & {
    readonly sliceDirectory: string | null;
  },
): UnitEdits {
  return {
    shared: {
      environment: { LD_LIBRARY_PATH: `${CONTAINER_LIBRARY_DIRECTORY}/lib64`, NVIDIA_VISIBLE_DEVICES: 'void' },
      mounts: [
        ...unit.libraryMounts,
        ...(unit.sliceDirectory === null ? [] : sliceMounts(unit.sliceDirectory, unit.writableFiles)),
      ],
      deviceNodes: unit.commonNodes,
    },
    devices: unit.gpuNodes,
  };
}

function sliceMounts(sliceDirectory: string, writableFiles: readonly string[]): BindMount[] {
  return [
    { hostPath: sliceDirectory, containerPath: CONTAINER_SLICE_DIRECTORY, writable: false },
    ...writableFiles.map((name) => ({
      hostPath: `${sliceDirectory}/${name}`,
      containerPath: `${CONTAINER_SLICE_DIRECTORY}/${name}`,
      writable: true,
    })),
  ];
}

/**
 * The edits for a container with these GPUs: the answer of tkestack gpu-manager, so that images made for it run
 * unchanged.
 */
export function sliceEdits(slice: SliceEdits): ContainerEdits {
  const { mpsFolder: mps = null } = slice;
  return {
    environment: {
      LD_LIBRARY_PATH: libraryPath(slice.compat32),
      ...(slice.gpus === null ? {} : { NVIDIA_VISIBLE_DEVICES: slice.gpus.map((gpu) => gpu.uuid).join(',') }),
      ...(mps === null ? {} : { CUDA_MPS_PIPE_DIRECTORY: CONTAINER_MPS_DIRECTORY }),
    },
    mounts: [
      ...slice.libraryMounts,
      ...sliceMounts(slice.sliceDirectory, slice.writableFiles),
      ...(mps === null ? [] : [{ hostPath: mps, containerPath: CONTAINER_MPS_DIRECTORY, writable: false }]),
    ],
    deviceNodes: [...distinct(slice.gpuNodes.flat()), ...slice.commonNodes],
    annotations: {
      [CORE_RESOURCE]: String(slice.cores),
      ...(slice.memoryBytes === null ? {} : { [MEMORY_RESOURCE]: String(slice.memoryBytes) }),
      ...(slice.gpus === null ? {} : { [DEVICE_KEY]: deviceNamesOf(slice.gpuNodes) }),
    },
    cdiDevices: [],
  };
}

/** Instances of one GPU share its node. */
function distinct(nodes: readonly DeviceNode[]): readonly DeviceNode[] {
  return nodes.filter(({ hostPath }, at) => nodes.findIndex((other) => other.hostPath === hostPath) === at);
}

/** The loader skips libraries of the other architecture, so both folders are listed when the need is unknown. */
function libraryPath(compat32: boolean | null): string {
  const folders = compat32 === null ? ['lib64', 'lib'] : [compat32 ? 'lib' : 'lib64'];
  return folders.map((folder) => `${CONTAINER_LIBRARY_DIRECTORY}/${folder}`).join(':');
}

function deviceNamesOf(gpuNodes: readonly (readonly DeviceNode[])[]): string {
  return distinct(gpuNodes.flatMap((nodes) => nodes.slice(0, 1)))
    .map((node) => node.containerPath)
    .join(',');
}
