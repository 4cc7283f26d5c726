import { ANY_NODE, selectorKey, type NodeSelector } from '../../manifests/node-selector.js';

/** The GPU request of one container. */
export interface ContainerDemand {
  /** Index in `spec.containers`; for an init container in `spec.initContainers`. */
  readonly container: number;
  /** Hundredths of a GPU: below 100 a part of one GPU, otherwise whole GPUs. */
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The request of a pod. */
export interface Demand {
  /** Containers that need a GPU, in the order in which the kubelet serves them. Empty for a pod without GPU request. */
  readonly containers: readonly ContainerDemand[];
  /** Init containers that need a GPU; they run one after another before `containers`, which reuse their GPUs. */
  readonly init: readonly ContainerDemand[];
  /** Thousandths of a CPU of the host. */
  readonly cpuMilli: number;
  /** Memory of the host. */
  readonly hostMemoryBytes: number;
  readonly selector: NodeSelector;
  /** Whether several whole GPUs of a container must be of one model and memory. */
  readonly equalGpus: boolean;
  /** Equal for equal demands: the key of cached results. */
  readonly key: string;
  /** Equal for demands with equal requests for GPUs. */
  readonly gpuKey: string;
}

/** Builds a demand and its key. */
export function demandOf(parts: Partial<Omit<Demand, 'key' | 'gpuKey'>>): Demand {
  const {
    containers = [],
    init = [],
    cpuMilli = 0,
    hostMemoryBytes = 0,
    selector = ANY_NODE,
    equalGpus = false,
  } = parts;
  const list = (wanted: readonly ContainerDemand[]) =>
    wanted.map(({ cores, memoryBytes }) => `${cores}/${memoryBytes}`).join(',');
  const gpuKey = `${list(containers)};${list(init)}${equalGpus ? ';equal' : ''}`;
  const key = `${gpuKey};${cpuMilli};${hostMemoryBytes};${selectorKey(selector)}`;
  return { containers, init, cpuMilli, hostMemoryBytes, selector, equalGpus, key, gpuKey };
}

/** True when the pod requests a GPU. */
export function needsGpu(demand: Demand): boolean {
  return demand.containers.length > 0 || demand.init.length > 0;
}
