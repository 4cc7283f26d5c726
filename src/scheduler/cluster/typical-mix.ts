import { CORES_PER_GPU } from '../../gpu/resources.js';
import { needsGpu, type Demand } from './demand.js';
import type { NodeSelector } from '../../kube/node-selector.js';

/** One kind of request that comes again and again. */
export interface TypicalRequest {
  /** Share of all requests; those of a mix sum up to 1. */
  readonly weight: number;
  /** GPUs: 1 for a part of one. */
  readonly count: number;
  /** Of each GPU, hundredths. */
  readonly cores: number;
  /** Of each GPU; 0 for whole GPUs without a word on memory. */
  readonly memoryBytes: number;
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  readonly selector: NodeSelector;
}

/**
 * The kinds of request that the cluster usually gets, the most frequent first. Never changed; a new one has a new
 * version.
 */
export interface TypicalMix {
  readonly version: number;
  readonly requests: readonly TypicalRequest[];
}

export const EMPTY_MIX: TypicalMix = { version: 0, requests: [] };

/** More kinds than this make decisions slower, not better: on the openb trace 48 do as well as all 130. */
const MAX_REQUESTS = 64;

/** Of so many pods ago a pod counts half as much. */
const HALF_LIFE_PODS = 8192;

/** A new mix is made after this many pods at the latest; every one of them makes remembered costs void. */
const MAX_INTERVAL_PODS = 1024;
const MIN_INTERVAL_PODS = 16;

/** Learns the mix from the pods that come: each counts once, recent ones more. Pods without GPU are no part of it. */
export class MixLearner {
  readonly #kinds = new Map<string, { request: Omit<TypicalRequest, 'weight'>; weight: number }>();
  #growth = 1;
  #seen = 0;
  #next = MIN_INTERVAL_PODS;
  #mix: TypicalMix = EMPTY_MIX;

  /** The mix as last made. */
  get mix(): TypicalMix {
    return this.#mix;
  }

  /** Pods seen. */
  get seen(): number {
    return this.#seen;
  }

  /** Takes a pod into account. True when that made a new mix. */
  observe(demand: Demand): boolean {
    if (!needsGpu(demand)) return false;
    const wanted = demand.containers.length > 0 ? demand.containers : demand.init;
    // Instead of making all older weights smaller, each new one is a little larger.
    this.#growth *= 2 ** (1 / HALF_LIFE_PODS);
    for (const { cores, memoryBytes } of wanted) {
      const count = Math.max(1, Math.floor(cores / CORES_PER_GPU));
      const request = {
        count,
        cores: Math.min(cores, CORES_PER_GPU),
        memoryBytes: memoryBytes / count,
        // The host's part of a pod with several GPU containers is split: each of them is a kind of its own.
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
