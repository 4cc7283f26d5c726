import type { GpuSelection } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import type { Topology } from '../topology/topology.js';

/** The GPU request of one container. */
export interface ContainerDemand {
  /** Index in `spec.containers`; for an init container in `spec.initContainers`. */
  readonly container: number;
  /** Cores of a GPU: below 100 a part of each of `gpus`, otherwise whole GPUs. */
  readonly cores: number;
  /** Of each GPU for parts; in sum for whole GPUs. */
  readonly memoryBytes: number;
  /** How many GPUs each have that part; absent: one. */
  readonly gpus?: number;
  /** What it asks for while its pod is on a node, instead of both; absent: nothing else. */
  readonly resize?: { readonly cores: number; readonly memoryBytes: number };
  /** It may be suspended; absent: it must run. */
  readonly suspendable?: true;
}

/** The GPU request of a pod. */
export interface PodDemand {
  /** Containers that need a GPU, in the order in which the kubelet serves them. Empty for a pod without GPU request. */
  readonly containers: readonly ContainerDemand[];
  /** Init containers that need a GPU; they run one after another before `containers`, which reuse their GPUs. */
  readonly init: readonly ContainerDemand[];
  /** What the pod's annotations say about its GPUs. */
  readonly selection: GpuSelection;
  /** Equal for demands with equal requests for GPUs: the key of search results; absent: none are kept. */
  readonly gpuKey?: string;
}

/** The GPUs that a pod is placed on. `gpus[i]` is the GPU at position i of the topology. */
export interface GpuSite {
  readonly gpus: readonly { readonly gpu: Gpu }[];
  readonly topology: Topology;
}

/** The amounts that a pod takes of one GPU. */
export interface Charge {
  readonly position: number;
  readonly cores: number;
  readonly memoryBytes: number;
  /** As in `ContainerDemand`. */
  readonly suspendable?: true;
}
