import { ANY_GPUS, selectionKey } from '../../gpu/gpu-selection.js';
import type { ContainerDemand, PodDemand } from '../../gpu/pods/pod-demand.js';
import { ANY_NODE, selectorKey, type NodeSelector } from '../../manifests/node-selector.js';

/** The request of a pod. */
export interface Demand extends PodDemand {
  /** Thousandths of a CPU of the host. */
  readonly cpuMilli: number;
  /** Memory of the host. */
  readonly hostMemoryBytes: number;
  readonly selector: NodeSelector;
  /** Equal for equal demands: the key of cached results. */
  readonly key: string;
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
    selection = ANY_GPUS,
  } = parts;
  const list = (wanted: readonly ContainerDemand[]) =>
    wanted
      .map(
        ({ cores, memoryBytes, gpus = 1, resize }) =>
          `${cores}/${memoryBytes}${gpus === 1 ? '' : `x${gpus}`}${resize ? `+${resize.cores}/${resize.memoryBytes}` : ''}`,
      )
      .join(',');
  const gpuKey = `${list(containers)};${list(init)}${selection === ANY_GPUS ? '' : `;${selectionKey(selection)}`}`;
  const key = `${gpuKey};${cpuMilli};${hostMemoryBytes};${selectorKey(selector)}`;
  return { containers, init, cpuMilli, hostMemoryBytes, selector, selection, key, gpuKey };
}

/** True when the pod requests a GPU. */
export function needsGpu(demand: Demand): boolean {
  return demand.containers.length > 0 || demand.init.length > 0;
}
