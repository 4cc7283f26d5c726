import { gpusOf } from '../../gpu/pods/pod-placement.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import { needsGpu, type Demand } from './demand.js';
import type { NodeSelector } from '../../manifests/node-selector.js';

/** One kind of request that recurs. */
export interface TypicalRequest {
  /** Share of all requests; the weights of a mix sum up to 1. */
  readonly weight: number;
  /** Number of GPUs: 1 for a part of one GPU. */
  readonly count: number;
  /** Cores of each GPU. */
  readonly cores: number;
  /** Bytes on each GPU; 0 for whole GPUs without a memory request. */
  readonly memoryBytes: number;
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  readonly selector: NodeSelector;
}

/**
 * The kinds of request that the cluster usually gets, the most frequent first. Immutable; a new mix has a new version.
 */
export interface TypicalMix {
  readonly version: number;
  readonly requests: readonly TypicalRequest[];
}

export const EMPTY_MIX: TypicalMix = { version: 0, requests: [] };

/**
 * More kinds make decisions slower, not better: on the openb trace, the results with 48 kinds equal those with all 130.
 */
const MAX_REQUESTS = 64;

/** After this many further pods, the weight of a pod has halved. */
const HALF_LIFE_PODS = 8192;

/** A new mix is built after this many pods at the latest; each new mix invalidates all cached costs. */
const MAX_INTERVAL_PODS = 1024;
const MIN_INTERVAL_PODS = 16;

/** Learns the mix from arriving pods: each counts once, recent ones more. Pods without GPU request are ignored. */
export class MixLearner {
  readonly #kinds = new Map<string, { request: Omit<TypicalRequest, 'weight'>; weight: number }>();
  #growth = 1;
  #seen = 0;
  #next = MIN_INTERVAL_PODS;
  #mix: TypicalMix = EMPTY_MIX;

  /** The mix that was built last. */
  get mix(): TypicalMix {
    return this.#mix;
  }

  /** Number of pods so far. */
  get seen(): number {
    return this.#seen;
  }

  /** Adds a pod. True when this built a new mix. */
  observe(demand: Demand): boolean {
    if (!needsGpu(demand)) return false;
    const wanted = demand.containers.length > 0 ? demand.containers : demand.init;
    // Growing the weight of each new pod has the effect of shrinking all older ones, at less cost.
    this.#growth *= 2 ** (1 / HALF_LIFE_PODS);
    for (const container of wanted) {
      const { cores, memoryBytes } = container;
      const count = gpusOf(container);
      const request = {
        count,
        cores: Math.min(cores, CORES_PER_GPU),
        memoryBytes: cores < CORES_PER_GPU ? memoryBytes : memoryBytes / count,
        // The host's part of a pod with several GPU containers is divided: each container is a separate kind.
        cpuMilli: demand.cpuMilli / wanted.length,
        hostMemoryBytes: demand.hostMemoryBytes / wanted.length,
        selector: demand.selector,
      };
      const key = `${wanted.length};${cores};${memoryBytes};${demand.key}`;
      const kind = this.#kinds.get(key);
      if (kind === undefined) this.#kinds.set(key, { request, weight: this.#growth / wanted.length });
      else kind.weight += this.#growth / wanted.length;
    }
    this.#seen++;
    if (this.#seen < this.#next) return false;
    this.#next = this.#seen + Math.min(MAX_INTERVAL_PODS, Math.max(MIN_INTERVAL_PODS, this.#seen));
    this.#make();
    return true;
  }

  #make(): void {
    const kinds = [...this.#kinds.entries()].sort(([, a], [, b]) => b.weight - a.weight);
    // Kinds with negligible weight are removed, and the growing weights are scaled down.
    for (const [key] of kinds.slice(MAX_REQUESTS * 8)) this.#kinds.delete(key);
    for (const kind of this.#kinds.values()) kind.weight /= this.#growth;
    this.#growth = 1;
    const top = kinds.slice(0, MAX_REQUESTS).map(([, kind]) => kind);
    const sum = top.reduce((total, kind) => total + kind.weight, 0);
    this.#mix = {
      version: this.#mix.version + 1,
      requests: top.map(({ request, weight }) => ({ ...request, weight: weight / sum })),
    };
  }
}
