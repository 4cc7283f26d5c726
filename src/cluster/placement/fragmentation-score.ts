import { CORES_PER_GPU } from '../../gpu/resources.js';
import { sumCores, type ClusterNode, type FreeState, type NodeShape } from './node.js';
import { selects } from '../../manifests/node-selector.js';
import type { TypicalMix } from './typical-mix.js';

/**
 * Weight of "which free GPUs could host such a pod" (the measure of FGD: Weng et al., "Beware of Fragmentation", USENIX
 * ATC 2023); the rest is the weight of "how much would be used if such pods filled the node". The first preserves
 * capacity for rare pods (several whole GPUs), the second measures how well parts pack. On the openb trace, each of
 * them alone allocates less than both together.
 */
const HOSTING_SHARE = 0.7;

/**
 * A request counts by its frequency, multiplied by this power of the ratio of free capacity to capacity that could host
 * it. Capacity that only a few nodes have (eight GPUs and 120 CPUs, for example) is thereby kept for the pods that need
 * it.
 */
const SCARCITY_POWER = 0.75;

/** A request that no free capacity could host counts as if this part of the free capacity could. */
const MIN_HOSTABLE = 0.002;

/** The mix as columns for fast reading: request k is entry k of each array. */
interface Columns {
  readonly weight: Float64Array;
  readonly count: Int32Array;
  readonly cores: Float64Array;
  readonly memory: Float64Array;
  readonly cpuMilli: Float64Array;
  readonly hostMemory: Float64Array;
}

/** Measures how much of a node's free capacity a typical mix of pods could use. */
export class FragmentationScore {
  readonly #mix: TypicalMix;
  readonly #columns: Columns;
  /** By node name: which requests of the mix may run on the node at all. Selectors and labels seldom change. */
  readonly #eligible = new Map<string, { readonly labels: NodeShape['labels']; readonly mask: Uint8Array }>();
  readonly #everywhere: Uint8Array | null;

  /** The present state of `nodes` determines how scarce the room for each request is; later changes do not. */
  constructor(mix: TypicalMix, nodes: Iterable<ClusterNode>) {
    this.#mix = mix;
    const column = (read: (request: TypicalMix['requests'][number]) => number) => Float64Array.from(mix.requests, read);
    this.#columns = {
      weight: column((request) => request.weight),
      count: Int32Array.from(mix.requests, (request) => request.count),
      cores: column((request) => request.cores),
      memory: column((request) => request.memoryBytes),
      cpuMilli: column((request) => request.cpuMilli),
      hostMemory: column((request) => request.hostMemoryBytes),
    };
    const anywhere = mix.requests.every(
      ({ selector }) => selector.terms === null && Object.keys(selector.labels).length === 0,
    );
    this.#everywhere = anywhere ? new Uint8Array(mix.requests.length).fill(1) : null;
    this.#weighByScarcity(nodes);
  }

  get mix(): TypicalMix {
    return this.#mix;
  }

  /**
   * Capacity in cores that the mix could use in this state of the node: the mean over its requests,
   * weighted by frequency. The free part of a GPU counts by its scarcer resource, a request by its larger one, of cores
   * and memory.
   */
  usable(shape: NodeShape, state: FreeState): number {
    const { weight, count, cores, memory, cpuMilli, hostMemory } = this.#columns;
    const eligible = this.#everywhere ?? this.#mask(shape);
    const gpus = shape.gpus.length;
    let sum = 0;
    for (let k = 0; k < weight.length; k++) {
      if (eligible[k] === 0) continue;
      const cpu = cpuMilli[k] as number;
      const host = hostMemory[k] as number;
      if (state.cpuMilli < cpu || state.hostMemoryBytes < host) continue;
      const hostLimit = Math.min(
        cpu > 0 ? state.cpuMilli / cpu : Infinity,
        host > 0 ? state.hostMemoryBytes / host : Infinity,
      );
      const wantedCores = cores[k] as number;
      const wantedMemory = memory[k] as number;
      let hosting = 0;
      let fitting = 0;
      let size = wantedCores;
      for (let at = 0; at < gpus; at++) {
        const freeCores = state.cores[at] as number;
        const freeMemory = state.memory[at] as number;
        if (freeCores < wantedCores || freeMemory < wantedMemory || freeCores === 0) continue;
        const total = (shape.gpus[at] as { gpu: { memoryBytes: number } }).gpu.memoryBytes;
        hosting += Math.min(freeCores, (freeMemory / total) * CORES_PER_GPU);
        size = Math.max(wantedCores, (wantedMemory / total) * CORES_PER_GPU);
        fitting += Math.floor(
          wantedMemory > 0 ? Math.min(freeCores / wantedCores, freeMemory / wantedMemory) : freeCores / wantedCores,
        );
      }
      const needed = count[k] as number;
      if (fitting < needed) continue;
      const packed = Math.min(Math.floor(fitting / needed), hostLimit) * needed * size;
      sum += (weight[k] as number) * (HOSTING_SHARE * hosting + (1 - HOSTING_SHARE) * packed);
    }
    return sum;
  }

  #weighByScarcity(nodes: Iterable<ClusterNode>): void {
    const { weight } = this.#columns;
    const hostable = new Float64Array(weight.length);
    let free = 0;
    for (const { shape, free: state } of nodes) {
      const eligible = this.#everywhere ?? this.#mask(shape);
      free += sumCores(state);
      for (let k = 0; k < weight.length; k++)
        if (eligible[k] === 1) hostable[k] = (hostable[k] as number) + this.#hostable(k, state);
    }
    if (free === 0) return;
    let sum = 0;
    for (let k = 0; k < weight.length; k++) {
      const scarcity = free / Math.max(hostable[k] as number, free * MIN_HOSTABLE);
      weight[k] = (weight[k] as number) * scarcity ** SCARCITY_POWER;
      sum += weight[k] as number;
    }
    for (let k = 0; k < weight.length; k++) weight[k] = (weight[k] as number) / sum;
  }

  /** Free cores of the GPUs that could host request k. */
  #hostable(k: number, state: FreeState): number {
    const { count, cores, memory, cpuMilli, hostMemory } = this.#columns;
    if (state.cpuMilli < (cpuMilli[k] as number) || state.hostMemoryBytes < (hostMemory[k] as number)) return 0;
    let sum = 0;
    let gpus = 0;
    for (let at = 0; at < state.cores.length; at++) {
      const free = state.cores[at] as number;
      if (free < (cores[k] as number) || (state.memory[at] as number) < (memory[k] as number)) continue;
      sum += free;
      gpus++;
    }
    return gpus < (count[k] as number) ? 0 : sum;
  }

  #mask(shape: NodeShape): Uint8Array {
    const known = this.#eligible.get(shape.name);
    if (known?.labels === shape.labels) return known.mask;
    const mask = Uint8Array.from(this.#mix.requests, ({ selector }) =>
      selects(selector, shape.name, shape.labels) ? 1 : 0,
    );
    this.#eligible.set(shape.name, { labels: shape.labels, mask });
    return mask;
  }
}
