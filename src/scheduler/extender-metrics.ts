import { CORES_PER_GPU } from '../gpu/resources.js';
import { counted, counter, histogram, Metrics, only, readAt, type Metric } from '../http/metrics.js';
import type { Cluster } from '../cluster/placement/cluster.js';
import type { MisfitReason } from '../cluster/placement/fit-result.js';
import { sumCores, type ClusterNode } from '../cluster/placement/node.js';

/** Counts of the extender's decisions. */
export interface DecisionMetrics {
  /** A number of nodes were refused to a pod; `bad-request` counts once per pod. */
  refused(why: MisfitReason | 'bad-request', nodes: number): void;
  /** A pod could not be placed on the node that the scheduler chose. */
  conflict(): void;
  /** Reservations expired because their pods never came. */
  expired(count: number): void;
  /** A pod waited for decisions on other pods. */
  waited(): void;
  /** A call used up its time and answered with the results until then. */
  cutOff(verb: string): void;
}

const REQUESTS = {
  name: 'gpu_extender_requests_total',
  type: 'counter',
  help: 'Calls of the scheduler, by verb and result',
  labels: ['verb', 'result'],
} as const;

const DURATIONS = {
  name: 'gpu_extender_request_duration_seconds',
  type: 'histogram',
  help: 'Time from the first byte of a call to its answer',
  labels: ['verb'],
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
} as const;

const REFUSALS = {
  name: 'gpu_extender_refused_nodes_total',
  type: 'counter',
  help: 'Nodes refused to pods, by reason',
  labels: ['reason'],
} as const;

const CONFLICTS = {
  name: 'gpu_extender_bind_conflicts_total',
  type: 'counter',
  help: 'Pods for which the node chosen by the scheduler had no room any more',
  labels: [],
} as const;

const EXPIRED = {
  name: 'gpu_extender_expired_claims_total',
  type: 'counter',
  help: 'Reservations that expired because their pods never came',
  labels: [],
} as const;

const WAITS = {
  name: 'gpu_extender_waits_total',
  type: 'counter',
  help: 'Times that a pod waited for the decision on another pod',
  labels: [],
} as const;

const CUT_OFF = {
  name: 'gpu_extender_cut_off_calls_total',
  type: 'counter',
  help: 'Calls that used up their time and answered with what was found until then, by verb',
  labels: ['verb'],
} as const;

/** The sources of the gauges. */
interface Scrape {
  readonly cluster: Cluster;
  readonly nodes: readonly ClusterNode[];
  readonly unwritten: number;
  readonly silentMs: number;
}

const gauge = (name: string, help: string, value: (scrape: Scrape) => number): Metric<Scrape> => ({
  name,
  type: 'gauge',
  help,
  labels: [],
  read: (scrape) => only(value(scrape)),
});

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const GAUGES: readonly Metric<Scrape>[] = [
  gauge(
    'gpu_extender_nodes',
    'Nodes with GPUs',
    ({ nodes }) => nodes.filter((node) => node.shape.gpus.length > 0).length,
  ),
  gauge('gpu_extender_gpus', 'GPUs of all nodes', ({ nodes }) => sum(nodes.map((node) => node.shape.gpus.length))),
  gauge('gpu_extender_free_gpus', 'GPUs without any allocation', ({ nodes }) =>
    sum(nodes.map((node) => node.wholeCount)),
  ),
  gauge(
    'gpu_extender_free_gpu_equivalents',
    'Free cores of all GPUs, in GPUs',
    ({ nodes }) => sum(nodes.map((node) => sumCores(node.free))) / CORES_PER_GPU,
  ),
  gauge(
    'gpu_extender_open_claims',
    'Pods with a reservation, whose node is not chosen yet',
    ({ cluster }) => cluster.reservations.size,
  ),
  gauge(
    'gpu_extender_pods_without_card',
    'Pods on nodes where no GPU has room for them',
    ({ cluster }) =>
      [...cluster.placedPods.values()].filter(
        ({ source, pod }) => source === 'nowhere' && pod.demand.containers.length > 0,
      ).length,
  ),
  gauge(
    'gpu_extender_unwritten_annotations',
    'Predictions not written to their pods yet',
    ({ unwritten }) => unwritten,
  ),
  gauge(
    'gpu_extender_api_silent_seconds',
    'Time without connection to the API server',
    ({ silentMs }) => silentMs / 1000,
  ),
];

/** Metrics of the extender: names begin with `gpu_extender_`. */
export class ExtenderMetrics implements DecisionMetrics {
  readonly #requests = counter(REQUESTS);
  readonly #durations = histogram(DURATIONS);
  readonly #refusals = counter(REFUSALS);
  readonly #conflicts = counter(CONFLICTS);
  readonly #expired = counter(EXPIRED);
  readonly #waits = counter(WAITS);
  readonly #cutOff = counter(CUT_OFF);
  readonly page: Metrics;

  constructor(cluster: Cluster, sources: { readonly unwritten: () => number; readonly silentMs: () => number }) {
    this.page = new Metrics(
      counted([
        this.#requests,
        this.#durations,
        this.#refusals,
        this.#conflicts,
        this.#expired,
        this.#waits,
        this.#cutOff,
      ]),
      readAt(GAUGES, () => ({
        cluster,
        nodes: [...cluster.nodes.values()],
        unwritten: sources.unwritten(),
        silentMs: sources.silentMs(),
      })),
    );
  }

  /** Counts one answered call of the scheduler. */
  answered(verb: string, result: 'ok' | 'error', seconds: number): void {
    this.#requests.inc({ verb, result });
    this.#durations.observe({ verb }, seconds);
  }

  refused(why: MisfitReason | 'bad-request', nodes: number): void {
    this.#refusals.inc({ reason: why }, nodes);
  }

  conflict(): void {
    this.#conflicts.inc();
  }

  expired(count: number): void {
    this.#expired.inc(count);
  }

  waited(): void {
    this.#waits.inc();
  }

  cutOff(verb: string): void {
    this.#cutOff.inc({ verb });
  }
}
