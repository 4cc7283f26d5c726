import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Cluster } from './cluster/cluster.js';
import { CORES_PER_GPU } from '../gpu/resources.js';
import { sumCores } from './cluster/node.js';
import type { Refusal } from './cluster/fit-result.js';

/** What the decider counts. */
export interface DecisionMetrics {
  /** So many nodes were refused to a pod; `bad-request` counts once for the pod. */
  refused(why: Refusal | 'bad-request', nodes: number): void;
  /** A pod could not be placed on the node that the scheduler chose. */
  conflict(): void;
  /** Room was kept for pods that never came. */
  expired(count: number): void;
  /** A pod waited for other decisions. */
  waited(): void;
}

/** Metrics of the extender: names begin with `gpu_extender_`. */
export class ExtenderMetrics implements DecisionMetrics {
  readonly #registry = new Registry();
  readonly #requests: Counter;
  readonly #durations: Histogram;
  readonly #refusals: Counter;
  readonly #conflicts: Counter;
  readonly #expired: Counter;
  readonly #waits: Counter;

  constructor(cluster: Cluster, sources: { readonly unwritten: () => number; readonly silentMs: () => number }) {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'gpu_extender_requests_total',
      help: 'Calls of the scheduler, by verb and result',
      labelNames: ['verb', 'result'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'gpu_extender_request_duration_seconds',
      help: 'Time from the first byte of a call to its answer',
      labelNames: ['verb'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    });
    this.#refusals = new Counter({
      name: 'gpu_extender_refused_nodes_total',
      help: 'Nodes refused to pods, by reason',
      labelNames: ['reason'],
      registers,
    });
    this.#conflicts = new Counter({
      name: 'gpu_extender_bind_conflicts_total',
      help: 'Pods that found no room any more on the node chosen for them',
      registers,
    });
    this.#expired = new Counter({
      name: 'gpu_extender_expired_claims_total',
      help: 'Pods for which room was kept in vain',
      registers,
    });
    this.#waits = new Counter({
      name: 'gpu_extender_waits_total',
      help: 'Times that a pod waited for the decision on another',
      registers,
    });
    const gauge = (name: string, help: string, read: () => number): void => {
      new Gauge({
        name,
        help,
        registers,
        collect: function collect() {
          this.set(read());
        },
      });
    };
    const nodes = () => [...cluster.nodes.values()];
    gauge('gpu_extender_nodes', 'Nodes with GPUs', () => nodes().filter((node) => node.shape.gpus.length > 0).length);
    gauge('gpu_extender_gpus', 'GPUs of all nodes', () =>
      nodes().reduce((sum, node) => sum + node.shape.gpus.length, 0),
    );
    gauge('gpu_extender_free_gpus', 'GPUs of which nothing is taken', () =>
      nodes().reduce((sum, node) => sum + node.wholeCount, 0),
    );
    gauge(
      'gpu_extender_free_gpu_equivalents',
      'Free cores of all GPUs, in GPUs',
      () => nodes().reduce((sum, node) => sum + sumCores(node.free), 0) / CORES_PER_GPU,
    );
    gauge(
      'gpu_extender_open_claims',
      'Pods for which room is kept until it is known where they go',
      () => cluster.claims.size,
    );
    gauge(
      'gpu_extender_pods_without_card',
      'Pods on nodes where no GPU had room for them',
      () =>
        [...cluster.bookings.values()].filter(
          ({ source, pod }) => source === 'nowhere' && pod.demand.containers.length > 0,
        ).length,
    );
    gauge('gpu_extender_unwritten_annotations', 'Predictions not written to their pods yet', sources.unwritten);
    gauge(
      'gpu_extender_api_silent_seconds',
      'For how long there has been no connection to the API server',
      () => sources.silentMs() / 1000,
    );
  }

  /** One call of the scheduler was answered. */
  answered(verb: string, result: 'ok' | 'error', seconds: number): void {
    this.#requests.inc({ verb, result });
    this.#durations.observe({ verb }, seconds);
  }

  refused(why: Refusal | 'bad-request', nodes: number): void {
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

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
