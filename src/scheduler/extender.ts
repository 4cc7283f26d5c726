import { Cluster } from '../cluster/placement/cluster.js';
import { policyOf } from '../cluster/placement/policy/policies.js';
import type { PolicyName } from '../cluster/placement/policy/policy.js';
import type { Clock } from '../host/clock.js';
import { LimitedLog } from '../host/limited-log.js';
import type { Log } from '../host/log.js';
import type { KubeApi } from '../kube/client.js';
import { Election, type LeaseName } from './election.js';
import { ClusterCache } from '../cluster/cluster-cache.js';
import type { ClusterSource } from '../cluster/cluster-source.js';
import type { EvictionLimitSource } from '../cluster/eviction-limits.js';
import { ExtenderService, type ExtenderServiceOptions } from './extender-service.js';
import { ExtenderMetrics } from './extender-metrics.js';
import { verbRoutes } from './verb-routes.js';
import { plain } from '../http/answer.js';
import type { ListenerLimits } from '../http/limits.js';
import { Listener, type Route } from '../http/listener.js';
import { metricsRoute } from '../http/probe-routes.js';
import type { TlsSource } from '../http/tls.js';
import type { PodWriter } from './pod-writer.js';
import { WorkQueue } from '../kube/work-queue.js';
import { predictionAnnotations } from './prediction.js';

export interface ExtenderOptions extends ExtenderServiceOptions {
  readonly address: string;
  readonly port: number;
  /** Null: plain HTTP. */
  readonly tls: TlsSource | null;
  readonly policy: PolicyName;
  readonly version: string;
  /** How long a start waits before it reads pods: bindings that a previous process sent have ended by then. */
  readonly startDelayMs: number;
}

/** The extender's connections to other systems. */
export interface ExtenderWorld {
  readonly source: ClusterSource;
  readonly limits: EvictionLimitSource;
  readonly writer: PodWriter;
  readonly clock: Clock;
  readonly log: Log;
  /** Decides which replica answers; null for one replica. */
  readonly election: { readonly api: KubeApi; readonly lease: LeaseName; readonly identity: string } | null;
}

const SWEEP_PERIOD_MS = 1000;

/** Five thousand whole nodes are about 64 MiB; kube-scheduler sends one such body at a time. */
const LIMITS: Partial<ListenerLimits> = { bodyBytes: 128 << 20, bodiesBytes: 256 << 20, requestMs: 30_000 };

/**
 * The scheduler extender. It answers probes from the start, and the scheduler's calls once nodes and pods are listed.
 */
export class Extender {
  readonly #world: ExtenderWorld;
  readonly #cache: ClusterCache;
  readonly #service: ExtenderService;
  /** Predicted GPUs that are being written to pods that others have bound, by UID. */
  readonly #annotations: WorkQueue;
  readonly #server: Listener;
  readonly #election: Election | null;
  readonly #startDelayMs: number;
  #cancelStart: (() => void) | null = null;
  #endSweep: (() => void) | null = null;

  constructor(options: ExtenderOptions, world: ExtenderWorld) {
    const { source, limits, writer, clock, log } = world;
    const cluster = new Cluster(policyOf(options.policy));
    this.#world = world;
    this.#annotations = new WorkQueue({ clock, log });
    this.#cache = new ClusterCache(cluster, log, {
      adopted: (pod, gpus) => {
        if (pod.nodeName === null) return;
        const annotations = predictionAnnotations(pod.nodeName, gpus, clock.now());
        this.#annotations.put(pod.uid, { attempt: () => writer.annotate(pod, annotations) });
      },
      named: (uid) => this.#annotations.forget(uid),
    });
    const metrics = new ExtenderMetrics(cluster, {
      unwritten: () => this.#annotations.counts.waiting,
      silentMs: () => source.silentMs,
    });
    this.#service = new ExtenderService({
      cluster,
      cache: this.#cache,
      limits,
      writer,
      clock,
      log,
      metrics,
      options,
      notReady: () => this.#election?.notReady() ?? null,
    });
    this.#startDelayMs = options.startDelayMs;
    this.#election = this.#electionOf(world);
    // A replica without the Lease is ready: it answers as soon as the scheduler beside it leads.
    const unlisted = (): string | null => (this.#cache.isSynced ? null : 'nodes and pods are not listed yet');
    const notReady = (): string | null => unlisted() ?? this.#election?.notReady() ?? null;
    const asked = (): void => this.#election?.asked();
    const limitedLog = new LimitedLog(log, clock);
    const routes = new Map<string, Route>([
      ...Object.entries(verbRoutes({ service: this.#service, metrics, notReady, asked, log: limitedLog })),
      ['/metrics', metricsRoute(metrics.page)],
      ['/version', { method: 'GET', answer: () => plain(200, options.version) }],
    ]);
    const { address, port, tls } = options;
    this.#server = new Listener({
      ...{ address, port, tls, limits: LIMITS, log },
      notReady: () => [unlisted() ?? []].flat(),
      route: (path) => routes.get(path) ?? null,
    });
  }

  get port(): number {
    return this.#server.port;
  }

  /**
   * Listens, and begins to watch the API server; `/readyz` succeeds when the lists are complete. Rejects when the
   * address cannot be used.
   */
  async start(): Promise<void> {
    await this.#server.start();
    if (this.#startDelayMs === 0) this.#world.source.start(this.#cache);
    else this.#cancelStart = this.#world.clock.after(this.#startDelayMs, () => this.#world.source.start(this.#cache));
    this.#election?.start();
    this.#endSweep = this.#world.clock.every(SWEEP_PERIOD_MS, () => this.#service.sweep());
  }

  async stop(): Promise<void> {
    this.#endSweep?.();
    this.#cancelStart?.();
    await this.#server.stop();
    await this.#election?.stop();
    // Running writes are not awaited: the API server may be unreachable.
    void this.#annotations.stop();
    await this.#world.source.stop();
  }

  #electionOf({ election, source, clock, log }: ExtenderWorld): Election | null {
    if (election === null) return null;
    return new Election({
      ...election,
      clock,
      log,
      begin: () => source.refreshPods(),
      end: () => this.#service.forget(),
      isWriting: () => this.#service.isWriting,
    });
  }
}
