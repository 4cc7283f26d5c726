import type { ArbitratorPolicy } from '../arbitrator/index.js';
import { createEngine, type QuotaEngine } from '../engine.js';
import { KNOWN_KINDS, type EvaluationOptions } from '../evaluators/evaluate.js';
import { GroupReview } from './admission/group-review.js';
import type { Review, Verdict } from './admission/review.js';
import { register, type WebhookTarget } from './admission/webhook-objects.js';
import { WebhookServer } from './admission/webhook-server.js';
import { WorkloadReview } from './admission/workload-review.js';
import type { Issued } from './admission/certificate-secret.js';
import type { WatchableApi } from './api.js';
import { ArbitratorMetrics } from './arbitrator/arbitrator-metrics.js';
import { Arbitrator } from './arbitrator/arbitrator.js';
import { Controller } from './controller/controller.js';
import { Leader } from './controller/leader.js';
import { servedKinds, type ServedKind } from './kinds.js';
import type { QuotaLog } from './log.js';
import { Mirror } from './mirror/mirror.js';
import type { QuotaMetrics } from './quota-metrics.js';
import { KubeStore } from './store/kube-store.js';

export interface QuotaServiceOptions {
  readonly api: WatchableApi;
  readonly log: QuotaLog;
  readonly metrics: QuotaMetrics;
  readonly address: string;
  readonly port: number;
  readonly certificate: Issued;
  /** How the API server reaches us; null to leave the webhook configuration to others. Told the port that is listened on. */
  readonly target: ((port: number) => WebhookTarget) | null;
  readonly webhookName: string;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Of the Lease. */
  readonly namespace: string;
  readonly identity: string;
  readonly evaluation?: EvaluationOptions;
  /** Divides the cluster while it runs, on the replica that leads; null for not at all. */
  readonly arbitrator?: ArbitratorConfig | null;
  readonly now?: () => number;
  readonly holdMs?: number;
  readonly othersMs?: number;
  readonly refreshMs?: number;
  readonly leaseMs?: number;
  readonly retryMs?: number;
}

/** How the cluster is divided: as `ArbitratorOptions`. */
export interface ArbitratorConfig {
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  readonly writesAtOnce?: number;
}

/** How long what was admitted is held for an object that is still to come. */
const HOLD_MS = 60_000;
/** Stopped pods are remembered for so long: their ledgers have to hold them. */
const LATE_EVENTS_MS = 600_000;
const LEASE = 'gpu-manager-quota';

/** Quota on Kubernetes: the webhooks that admit, the mirror that follows, and on one replica of several the controller. */
export class QuotaService {
  readonly #options: QuotaServiceOptions;
  #engine: QuotaEngine | null = null;
  #mirror: Mirror | null = null;
  #server: WebhookServer | null = null;
  #leader: Leader | null = null;
  #controller: Controller | null = null;
  #arbitrator: Arbitrator | null = null;

  constructor(options: QuotaServiceOptions) {
    this.#options = options;
  }

  /** The port in use. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  get leading(): boolean {
    return this.#leader?.leading ?? false;
  }

  /** Why nothing can be decided yet; null once it can. */
  get notReady(): string | null {
    return this.#mirror?.synced === true ? null : 'the books are not in line with the API server yet';
  }

  /** Rejects where the API server does not answer or the address can not be listened on. */
  async start(): Promise<void> {
    const { api, log, metrics, now = Date.now, evaluation = {}, holdMs = HOLD_MS, othersMs, certificate } = this.#options;
    const kinds = await servedKinds(api, [...(evaluation.kinds ?? []), ...KNOWN_KINDS]);
    const store = new KubeStore({ api });
    const engine = await createEngine({ store, clock: now, policy: { lateEventsMs: LATE_EVENTS_MS } });
    const workloads = new WorkloadReview({ engine, api, evaluation, kinds: () => kinds, holdMs, admitted: (uid) => mirror.admitted(uid) });
    const mirror = new Mirror({
      api, engine, kinds, evaluation, log, holdMs, ownerIsThere: (owner, namespace) => workloads.ownerIsThere(owner, namespace), ...(othersMs === undefined ? {} : { othersMs }),
    });
    const groups = new GroupReview({ engine, api });
    const reviews: Record<string, (review: Review) => Promise<Verdict>> = {
      '/groups': (review) => groups.decide(review),
      '/workloads': (review) => workloads.decide(review),
      '/scale': (review) => workloads.scale(review),
      '/autoscalers': (review) => workloads.autoscaler(review),
    };
    this.#engine = engine;
    this.#mirror = mirror;
    metrics.watch(engine, mirror);
    mirror.start();
    const { address, port } = this.#options;
    this.#server = new WebhookServer({
      address, port, certificate, reviews, log,
      notReady: () => this.notReady,
      metrics: () => metrics.text(),
      decided: (path, verdict, seconds) => metrics.decided(path, verdict, seconds),
    });
    await this.#server.start();
    await this.#register(kinds);
    this.#leader = this.#candidate(engine, store, mirror, kinds, now);
    this.#leader.start();
  }

  /** In this order: nothing new is decided, what was decided is written, another may lead. */
  async stop(): Promise<void> {
    await this.#server?.stop();
    await this.#leader?.stop();
    await this.#mirror?.stop();
    await this.#engine?.close();
  }

  async #register(kinds: readonly ServedKind[]): Promise<void> {
    const { api, target, webhookName: name, unlabelled, certificate, evaluation } = this.#options;
    if (target === null) return;
    const { groupLabel } = evaluation ?? {};
    await register(api, { name, target: target(this.port), authority: certificate.authority, kinds, unlabelled, ...(groupLabel === undefined ? {} : { groupLabel }) });
  }

  #candidate(engine: QuotaEngine, store: KubeStore, mirror: Mirror, kinds: readonly ServedKind[], now: () => number): Leader {
    const { api, log, metrics, namespace, identity, refreshMs, leaseMs, retryMs, arbitrator = null } = this.#options;
    const counted = arbitrator === null ? null : new ArbitratorMetrics(metrics.registry);
    return new Leader({
      api, log, namespace, identity, now, name: LEASE,
      ...(leaseMs === undefined ? {} : { leaseMs }), ...(retryMs === undefined ? {} : { retryMs }),
      won: async () => {
        this.#controller = new Controller({
          api, engine, store, mirror, kinds, log, now, refreshed: (drift) => metrics.refreshed(drift, now()), ...(refreshMs === undefined ? {} : { refreshMs }),
        });
        this.#controller.start();
        if (arbitrator === null || counted === null) return;
        this.#arbitrator = new Arbitrator({ api, log, now, metrics: counted, ...arbitrator });
        this.#arbitrator.start();
      },
      lost: async () => {
        await Promise.all([this.#controller?.stop(), this.#arbitrator?.stop()]);
        [this.#controller, this.#arbitrator] = [null, null];
      },
    });
  }
}
