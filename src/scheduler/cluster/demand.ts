import { ANY_NODE, selectorKey, type NodeSelector } from '../../kube/node-selector.js';

/** What one container asks of the node's GPUs. */
export interface ContainerDemand {
  /** Index in `spec.containers`; for an init container in `spec.initContainers`. */
  readonly container: number;
  /** Hundredths of a GPU: below 100 a part of one, else whole GPUs. */
  readonly cores: number;
  readonly memoryBytes: number;
}

/** What a pod asks of a node. */
export interface Demand {
  /** Containers that need a GPU, in the order in which the kubelet serves them. Empty for a pod without. */
  readonly containers: readonly ContainerDemand[];
  /** Init containers that need a GPU; they run one after another before `containers`, which take their GPUs over. */
  readonly init: readonly ContainerDemand[];
  /** Thousandths of a CPU of the host. */
  readonly cpuMilli: number;
  /** Memory of the host. */
  readonly hostMemoryBytes: number;
  readonly selector: NodeSelector;
  /** Several whole GPUs of a container have to be of one model and memory. */
  readonly equalGpus: boolean;
  /** Equal for demands that are equal: what may be remembered for one holds for the other. */
  readonly key: string;
}

/** A demand, with its key worked out. */
export function demandOf(parts: Partial<Omit<Demand, 'key'>>): Demand {
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
  const key = `${list(containers)};${list(init)};${cpuMilli};${hostMemoryBytes};${selectorKey(selector)}${equalGpus ? ';equal' : ''}`;
  return { containers, init, cpuMilli, hostMemoryBytes, selector, equalGpus, key };
}

/** True when the pod asks for anything of a GPU. */
export function needsGpu(demand: Demand): boolean {
  return demand.containers.length > 0 || demand.init.length > 0;
}
