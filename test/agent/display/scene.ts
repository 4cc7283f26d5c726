import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';
import type { Level } from '../../../src/gpu/topology/level.js';
import type { AllocationSnapshot, GpuSnapshot, NodeSnapshot } from '../../../src/agent/node/view.js';
import { allocation, gpu, GIB, node, slice } from './fixture.js';

/** A machine of `count` GPUs: switches of two, sockets of half the GPUs, NVLink as `links` says. */
export function machine(count: number, links: (a: number, b: number) => number): Topology {
  const level = (a: number, b: number): Level => {
    if (a >> 1 === b >> 1) return 'PIX';
    return a < count / 2 === b < count / 2 ? 'NODE' : 'SYS';
  };
  return topologyOfPairs(count, (a, b) => ({ level: level(a, b), nvlinks: links(a, b) }));
}

const WORDS = [
  'resnet-train',
  'bert-serve',
  'llama-lora',
  'whisper',
  'ranking',
  'notebook-ann',
  'notebook-li',
  'etl-embed',
  'sdxl',
  'asr-batch',
  'search-rerank',
  'fraud-score',
];
const NAMESPACES = ['research', 'serving', 'team-vision', 'batch'];

/** Cores of the containers of one GPU; their sum is at most 100. */
const SPLITS = [
  [30, 20, 20, 10, 10],
  [50, 50],
  [100],
  [25, 25, 25],
  [10, 10, 10, 10, 10, 10, 10, 10],
  [],
  [40, 30],
  [60, 20, 10],
];

export interface SceneOptions {
  readonly gpus: number;
  /** Number of containers, spread over all GPUs; without it, as `splits` says. */
  readonly slices?: number;
  readonly links?: (a: number, b: number) => number;
  readonly memoryGib?: number;
  /** Quota groups that the containers name in turn; none without them. */
  readonly groups?: readonly string[];
}

/** A busy node whose usage rises and falls with time, to look at the page with. */
export class Scene {
  gpus: GpuSnapshot[];
  allocations: readonly AllocationSnapshot[];
  readonly #topology: Topology;
  readonly #groups: readonly string[];
  readonly #begin = Date.now();

  constructor({ gpus, slices, links = () => 0, memoryGib = 80, groups = [] }: SceneOptions) {
    this.#groups = groups;
    this.#topology = machine(gpus, links);
    this.gpus = Array.from({ length: gpus }, (_, index) =>
      gpu(index, {
        numaNode: index < gpus / 2 ? 0 : 1,
        memoryBytes: memoryGib * GIB,
        model: 'NVIDIA H100 80GB HBM3',
      }),
    );
    this.allocations = this.gpus.flatMap((of, at) =>
      this.#containers(of, slices === undefined ? (SPLITS[at % SPLITS.length] ?? []) : even(slices, gpus, at)),
    );
  }

  /** The state of the node at this moment. */
  snapshot(atMs = Date.now()): NodeSnapshot {
    const phase = (atMs - this.#begin) / 1000;
    const allocations = this.allocations.map((one, at) => ({
      ...one,
      slices: one.slices.map((of) => this.#busy(of, at, phase)),
    }));
    const all = allocations.flatMap(({ slices }) => slices);
    const gpus = this.gpus.map((one) => {
      const here = all.filter(({ gpuUuid }) => gpuUuid === one.uuid);
      const usedPercent = Math.min(
        100,
        here.reduce((sum, of) => sum + of.usedPercent, 0),
      );
      const dead = one.health.status === 'lost';
      return {
        ...one,
        usedPercent: dead ? null : usedPercent,
        usedMemoryBytes: dead ? null : here.reduce((sum, of) => sum + of.usedMemoryBytes, GIB / 2),
        temperatureCelsius: dead ? null : Math.round(34 + usedPercent / 3),
        powerWatts: dead ? null : 72 + usedPercent * 5.1,
      };
    });
    return node({ atMs, node: 'gpu-node-07', version: '0.1.0', gpus, allocations, topology: this.#topology });
  }

  #containers(of: GpuSnapshot, split: readonly number[]): AllocationSnapshot[] {
    return split.map((cores, at) => {
      const name = `${WORDS[(of.index * 5 + at) % WORDS.length]}-${(of.index * 31 + at * 7).toString(36)}`;
      const memory = cores === 100 ? null : Math.floor((of.memoryBytes * cores) / 100 / (GIB / 4)) * (GIB / 4);
      const one = slice(of, {
        allocatedCores: cores,
        share: cores,
        softLimit: at % 3 === 1 && cores < 50 ? cores * 2 : null,
        allocatedMemoryBytes: memory,
        memoryLimitBytes: memory,
        pids: [4000 + of.index * 40 + at],
      });
      return allocation(`${of.index}${at}${name}`, [one], {
        id: Buffer.from(`${of.index}.${at}.....`).toString('hex').slice(0, 16).padEnd(16, '0'),
        owners: [
          {
            podUid: `uid-${name}`,
            namespace: NAMESPACES[(of.index + at) % NAMESPACES.length] ?? '',
            pod: name,
            container: 'main',
          },
        ],
        ...this.#groupOf(of.index + at),
        allocatedAtMs: this.#begin - 3_600_000 * (1 + at),
      });
    });
  }

  #groupOf(at: number): { readonly quotaGroup?: string } {
    const group = this.#groups[at % this.#groups.length];
    return group === undefined ? {} : { quotaGroup: group };
  }

  #busy(of: AllocationSnapshot['slices'][number], at: number, seconds: number): AllocationSnapshot['slices'][number] {
    const wave = 0.55 + 0.4 * Math.sin(seconds / (7 + (at % 5)) + at * 1.7) + 0.08 * Math.sin(seconds * 1.3 + at);
    const idle = at % 7 === 3;
    const usedPercent = idle ? 0 : Math.max(0, Math.min(of.softLimit ?? of.share, of.share * wave * 1.25));
    const full = 0.35 + 0.5 * (((at * 37) % 100) / 100) + 0.05 * Math.sin(seconds / 11 + at);
    const counters =
      of.counters === null
        ? null
        : {
            ...of.counters,
            launches: Math.round(seconds * 900 + at),
            waits: Math.round(seconds * 300),
            throttledSeconds: at % 4 === 0 ? seconds * 0.35 : 0,
            chargedSeconds: (seconds * of.share) / 130,
            denied: { ...of.counters.denied, alloc: at % 6 === 0 ? 3 : 0 },
            deniedBytes: at % 6 === 0 ? 3 * GIB : 0,
          };
    const limit = of.memoryLimitBytes ?? of.gpuMemoryBytes;
    return {
      ...of,
      usedPercent,
      usedMemoryBytes: idle ? GIB / 8 : limit * Math.min(0.97, full),
      driverMemoryBytes: GIB / 4,
      hostBackedLimitBytes: 0,
      hostBackedBytes: 0,
      peakMemoryBytes: limit * 0.9,
      counters,
      controlError: at % 4 === 0 ? 0.004 : null,
    };
  }
}

function even(slices: number, gpus: number, at: number): number[] {
  const here = Math.floor(slices / gpus) + (at < slices % gpus ? 1 : 0);
  return Array.from({ length: here }, () => Math.floor(100 / here));
}
