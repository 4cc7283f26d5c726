import { counted, counter, histogram, readAt, type Metric, type MetricsPart } from '../../http/metrics.js';
import type { Allocation, FittingShape } from '../../quota/index.js';
import type { Quantities } from '../../manifests/quantities.js';
import { unitOfKey } from '../../manifests/key.js';
import type { EvictionResult } from './evictor.js';

type Allocations = readonly Allocation[];

const amounts = (
  what: 'deserved' | 'allocated',
  help: string,
  of: (allocation: Allocation) => Quantities,
): Metric<Allocations> => ({
  name: `quota_arbitrator_${what}`,
  type: 'gauge',
  help,
  labels: ['consumer', 'resource'],
  *read(allocations) {
    for (const allocation of allocations) {
      for (const [resource, amount] of of(allocation))
        if (amount > 0)
          yield { labels: { consumer: allocation.name, resource }, value: amount / 10 ** unitOfKey(resource).decimals };
    }
  },
});

const AMOUNTS: readonly Metric<Allocations>[] = [
  amounts('deserved', 'Fair share of a namespace in the cluster: cores, bytes, GPUs', ({ deserved }) => deserved),
  amounts('allocated', 'Requests of the scheduled pods of a namespace: cores, bytes, GPUs', ({ used }) => used),
];

const SHAPES: readonly Metric<readonly FittingShape[]>[] = [
  {
    name: 'quota_arbitrator_shape_fits',
    type: 'gauge',
    help: 'How often the requests of a pod still fit on the nodes of the cluster; of waiting pods first',
    labels: ['shape'],
    *read(shapes) {
      for (const { shape, fits } of shapes) yield { labels: { shape: shape.name }, value: fits };
    },
  },
  {
    name: 'quota_arbitrator_shape_blocked_nodes',
    type: 'gauge',
    help: 'Nodes on which the next pod of these requests lacks a resource; placement: free GPUs in pieces that are too small',
    labels: ['shape', 'resource'],
    *read(shapes) {
      for (const { shape, blockedBy } of shapes)
        for (const [resource, value] of blockedBy) yield { labels: { shape: shape.name, resource }, value };
    },
  },
];

const OVERUSED = {
  name: 'quota_arbitrator_overused_seconds_total',
  type: 'counter',
  help: 'Time during which a namespace used more of some resource than its fair share',
  labels: ['consumer'],
} as const;

const EVICTIONS = {
  name: 'quota_arbitrator_evictions_total',
  type: 'counter',
  help: 'Attempted evictions by result: evicted, refused by a disruption budget, failed, outdated (the watches are behind)',
  labels: ['result'],
} as const;

const STOPS = {
  name: 'quota_arbitrator_workloads_total',
  type: 'counter',
  help: 'Workloads of groups that borrow by result: stopped, resumed, refused (nothing was stopped for a waiting workload)',
  labels: ['result'],
} as const;

const CYCLES = {
  name: 'quota_arbitrator_cycle_seconds',
  type: 'histogram',
  help: 'Duration of one cycle: read the cluster, decide, evict and write',
  labels: [],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
} as const;

type ShapesReader = () => readonly FittingShape[] | Promise<readonly FittingShape[]>;

export class ArbitratorMetrics {
  readonly #overused = counter(OVERUSED);
  readonly #evictions = counter(EVICTIONS);
  readonly #stops = counter(STOPS);
  readonly #cycles = histogram(CYCLES);
  #allocations: Allocations = [];
  #shapes: ShapesReader = () => [];

  readonly parts: readonly MetricsPart[] = [
    readAt(AMOUNTS, () => this.#allocations),
    readAt(SHAPES, () => this.#shapes()),
    counted([this.#overused, this.#evictions, this.#stops, this.#cycles]),
  ];

  /** Sets the allocations of the cycle that just ended; empty when this replica stops leading. */
  setAllocations(allocations: Allocations): void {
    this.#allocations = allocations;
  }

  /** Sets the reader of the shapes of pods, which a scrape calls. */
  readShapes(shapes: ShapesReader): void {
    this.#shapes = shapes;
  }

  evicted(result: EvictionResult | 'outdated'): void {
    this.#evictions.inc({ result });
  }

  stopped(result: 'stopped' | 'resumed' | 'refused'): void {
    this.#stops.inc({ result });
  }

  cycle(seconds: number): void {
    this.#cycles.observe(seconds);
  }

  /** Adds time to the overused counters of the namespaces that were overused in the last cycle. */
  addOverusedTime(seconds: number): void {
    for (const { name, overused } of this.#allocations)
      if (overused.length > 0) this.#overused.inc({ consumer: name }, seconds);
  }
}
