import type { ArbitratorPolicy } from '../quota/arbitrator/index.js';
import type { QuotaEvent } from '../quota/core/event.js';
import { createEngine, type QuotaEngine } from '../quota/engine.js';
import { KNOWN_KINDS, type EvaluationOptions } from '../quota/evaluators/evaluate.js';
import { CertificateKeeper } from './admission/certificate-keeper.js';
import { ConsumerReview } from './admission/consumer-review.js';
import { GroupReview } from './admission/group-review.js';
import type { Review, AdmissionResponse } from './admission/review.js';
import { register, type WebhookTarget } from './admission/webhook-objects.js';
import { ANY_CALLER, type ReviewCallers } from './admission/review-callers.js';
import { NamespaceAccess } from './admission/namespace-access.js';
import { reviewRoutes } from './admission/review-routes.js';
import type { ListenerLimits } from '../http/limits.js';
import { Listener, type Route } from '../http/listener.js';
import { probeListener } from '../http/probe-listener.js';
import { probeRoutes } from '../http/probe-routes.js';
import { fixedTls } from '../http/tls.js';
import type { ServerTime } from '../kube/server-time.js';
import { WorkloadReview } from './admission/workload-review.js';
import type { IssuedCertificate } from './admission/certificate-secret.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import { ArbitratorMetrics } from './arbitrator/arbitrator-metrics.js';
import { Arbitrator } from './arbitrator/arbitrator.js';
import { Events } from '../kube/events.js';
import { WorkQueue } from '../kube/work-queue.js';
import { Controller } from './controller/controller.js';
import { ClusterFacts, type FactsChange } from './policy/cluster-facts.js';
import type { QuotaPolicy } from './policy/policy-object.js';
import { Leader } from '../kube/leader.js';
import { ServedKinds } from './served-kinds.js';
import { EngineClock, clockWarning } from './engine-clock.js';
import type { QuotaLog } from './log.js';
import { QUOTA_LEASE } from './names.js';
import type { GroupObject } from './group-object.js';
import { WorkloadReader } from './workload-reader.js';
import { Reconciler } from './reconciler/reconciler.js';
import type { QuotaMetrics } from './quota-metrics.js';
import { KubeStore } from './store/kube-store.js';
import { systemClock, type Clock } from '../host/clock.js';
import { LimitedLog } from '../host/limited-log.js';

export interface QuotaServiceOptions {
  readonly api: WatchableApi;
  /** What `api` knows of the API server's time; without, the engine goes by this machine's. */
  readonly serverTime?: ServerTime;
  readonly log: QuotaLog;
  readonly metrics: QuotaMetrics;
  readonly address: string;
  readonly port: number;
  /** Own port of the probes on the same address, without TLS; null where `port` answers them only. */
  readonly probePort?: number | null;
  readonly certificate: IssuedCertificate;
  /** Who may ask for reviews; without, everybody who reaches the port. */
  readonly callers?: ReviewCallers;
  /** The certificate that is to be served now, asked for every minute; without, the same for ever. */
  readonly currentCertificate?: () => Promise<IssuedCertificate>;
  /**
   * How the API server reaches us; null to leave the webhook configuration to others. Told the port that is listened
   * on.
   */
  readonly target: ((port: number) => WebhookTarget) | null;
  /** Whether every namespace may use groups whose chain has no selector of namespaces; true without. */
  readonly openGroups?: boolean;
  readonly webhookName: string;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Of the Lease. */
  readonly namespace: string;
  readonly identity: string;
  readonly evaluation?: EvaluationOptions;
  /** Divides the cluster while it runs, on the replica that leads; null for not at all. */
  readonly arbitrator?: ArbitratorConfig | null;
  readonly clock?: Clock;
  /** Told of everything that this replica decides, once it is written. */
  readonly audited?: (event: QuotaEvent) => void;
  readonly kindsMs?: number;
  readonly reservationMs?: number;
  readonly othersMs?: number;
  readonly refreshMs?: number;
  readonly leaseMs?: number;
  readonly retryMs?: number;
}

/** What the replica that leads works with. */
interface Candidacy {
  readonly engine: QuotaEngine;
  readonly store: KubeStore;
  readonly reconciler: Reconciler;
  readonly served: ServedKinds;
  readonly facts: ClusterFacts;
  /** The policy that the engine was made with. */
  readonly started: QuotaPolicy;
  readonly events: Events;
  /** Of this machine: how long a lease is held. */
  readonly clock: Clock;
  /** The API server's time. */
  readonly clusterClock: Clock;
}

/** How the cluster is divided: as `ArbitratorOptions`. */
export interface ArbitratorConfig {
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  readonly writeConcurrency?: number;
}

/** How long what was admitted is held for an object that is still to come. */
const HOLD_MS = 60_000;
/** Stopped pods are remembered for so long: their ledgers have to hold them. */
const LATE_EVENTS_MS = 600_000;
/** Changes of policy and nodes that come together are carried out together. */
const FACTS_MS = 200;
/** What events name as their source. */
const COMPONENT = 'gpu-manager-quota';
/** Events that wait while the API server is away; the oldest are dropped first. */
const MOST_EVENTS = 512;

/**
 * An object has 1.5 MiB at most, and a review has two of them; one API server asks from one address, some hundred
 * times at once.
 */
const LIMITS: Partial<ListenerLimits> = {
  connections: 512,
  connectionsPerAddress: 256,
  bodyBytes: 8 << 20,
  bodiesBytes: 64 << 20,
  bodiesBytesPerAddress: 32 << 20,
};

/**
 * Quota on Kubernetes: the webhooks that admit, the reconciler that follows, and on one replica of several the
 * controller.
 */
export class QuotaService {
  readonly #options: QuotaServiceOptions;
  #engine: QuotaEngine | null = null;
  #reconciler: Reconciler | null = null;
  #engineClock: EngineClock | null = null;
  #server: Listener | null = null;
  #probes: Listener | null = null;
  #leader: Leader | null = null;
  #controller: Controller | null = null;
  #arbitrator: Arbitrator | null = null;
  #kinds: ServedKinds | null = null;
  #keeper: CertificateKeeper | null = null;
  #facts: ClusterFacts | null = null;
  #factsPending: (() => void) | null = null;
  #applying: Promise<void> = Promise.resolve();
  #eventWrites: WorkQueue | null = null;

  constructor(options: QuotaServiceOptions) {
    this.#options = options;
  }

  /** The port in use. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** The port in use for probes alone; null where there is none. */
  get probePort(): number | null {
    return this.#probes?.port ?? null;
  }

  get leading(): boolean {
    return this.#leader?.leading ?? false;
  }

  /** Why nothing can be decided yet; null once it can. */
  get notReady(): string | null {
    if (this.#reconciler?.synced !== true) return 'the ledger is not in sync with the API server yet';
    return this.#engineClock?.notReady ?? null;
  }

  /** Rejects where the API server does not answer or the address cannot be listened on. */
  async start(): Promise<void> {
    const {
      api,
      log,
      metrics,
      evaluation = {},
      reservationMs = HOLD_MS,
      othersMs,
      certificate,
      clock = systemClock,
      kindsMs,
    } = this.#options;
    const facts = new ClusterFacts({
      api,
      evaluation,
      log,
      clock,
      ...(kindsMs === undefined ? {} : { everyMs: kindsMs }),
    });
    this.#facts = facts;
    await facts.start();
    const started = facts.policy;
    const served = await ServedKinds.read({
      api,
      log,
      clock,
      evaluators: () => [...(facts.admission().kinds ?? []), ...KNOWN_KINDS],
      ...(kindsMs === undefined ? {} : { everyMs: kindsMs }),
    });
    const store = new KubeStore({ api, clock });
    const { families, strictTypes } = started;
    const events = this.#openEvents(clock);
    const engineClock = this.#openClock(clock, events, store);
    /** The API server's time, and the timers of this machine. */
    const clusterClock: Clock = { ...clock, now: () => engineClock.now() };
    const engine = await createEngine({
      store,
      clock: () => engineClock.now(),
      policy: { lateEventsMs: LATE_EVENTS_MS, families, strictTypes },
    });
    engineClock.continueFrom(engine.now);
    this.#engineClock = engineClock;
    if (this.#options.audited !== undefined) engine.on(this.#options.audited);
    const reader = new WorkloadReader({ api, evaluation: () => facts.admission(), kinds: () => served.kinds });
    const workloads: WorkloadReview = new WorkloadReview({
      engine,
      reader,
      access: new NamespaceAccess({
        api,
        observed: (name): GroupObject | null => reconciler.group(name),
        isOpenByDefault: this.#options.openGroups ?? true,
      }),
      reservationMs,
      observedVersion: (uid): number | null => reconciler.workloadOf(uid)?.version ?? null,
      admitted: (uid) => reconciler.admitted(uid),
    });
    const reconciler: Reconciler = new Reconciler({
      api,
      engine,
      kinds: served.kinds,
      evaluation: () => facts.observation(),
      log,
      clock: clusterClock,
      reservationMs,
      ownership: reader.ownership,
      ...(othersMs === undefined ? {} : { othersMs }),
    });
    const consumers = new ConsumerReview({
      api,
      nodes: () => facts.nodes(),
      storageCapacity: () => facts.policy.storageCapacity,
    });
    const groups = new GroupReview({
      engine,
      api,
      observed: (name) => reconciler.group(name),
      reservationMs,
      chargeable: () => ({
        kinds: facts.policy.kinds,
        families: facts.policy.families,
        resources: new Set(facts.nodes().flatMap(({ allocatable }) => [...allocatable.keys()])),
      }),
    });
    const reviews: Record<string, (review: Review) => Promise<AdmissionResponse>> = {
      '/groups': (review) => groups.decide(review),
      '/workloads': (review) => workloads.decide(review),
      '/unlabelled': (review) => workloads.unlabelled(review),
      '/scale': (review) => workloads.scale(review),
      '/consumers': (review) => consumers.decide(review),
      '/resize': (review) => workloads.resize(review),
      '/inherit': (review) => workloads.inherit(review),
      '/autoscalers': (review) => workloads.autoscaler(review),
    };
    this.#engine = engine;
    this.#reconciler = reconciler;
    metrics.watch(engine, reconciler, engineClock);
    reconciler.start();
    const { address, port, probePort = null, callers = ANY_CALLER } = this.#options;
    const notReady = (): readonly string[] => [this.notReady ?? []].flat();
    const reviewRoute = reviewRoutes({
      reviews,
      callers,
      log: new LimitedLog(log, clock),
      notReady: () => this.notReady,
      decided: (path, verdict, seconds) => metrics.decided(path, verdict, seconds),
    });
    const others = new Map(Object.entries(probeRoutes({ notReady, metrics: metrics.page })));
    this.#server = new Listener({
      address,
      port,
      tls: fixedTls({ ...certificate, isCertificateOptional: true }),
      limits: LIMITS,
      route: (path): Route | null => others.get(path) ?? reviewRoute(path),
      log,
    });
    if (probePort !== null) this.#probes = probeListener({ address, port: probePort, notReady, log });
    await callers.start();
    await this.#probes?.start();
    await this.#server.start();
    callers.onChange(() => this.#register());
    this.#kinds = served;
    await this.#register();
    this.#leader = this.#candidate({ engine, store, reconciler, served, facts, started, events, clock, clusterClock });
    this.#leader.start();
    served.onChange(async (kinds) => {
      reconciler.serve(kinds);
      this.#controller?.serve(kinds);
      await this.#register();
    });
    served.start();
    let change: FactsChange = 'nodes';
    facts.onChange((what) => {
      if (what === 'policy') change = what;
      this.#factsPending ??= clock.after(FACTS_MS, () => {
        this.#factsPending = null;
        const all = change === 'policy';
        change = 'nodes';
        this.#applying = this.#applying.then(() => this.#applyFacts(served, reconciler, all));
      });
    });
    this.#keep(clock);
  }

  /** In this order: nothing new is decided, what was decided is written, another may lead. */
  async stop(): Promise<void> {
    this.#factsPending?.();
    const { callers } = this.#options;
    await Promise.all([this.#keeper?.stop(), this.#kinds?.stop(), this.#facts?.stop(), callers?.stop()]);
    await this.#server?.stop();
    await this.#probes?.stop(0);
    await this.#leader?.stop();
    await this.#eventWrites?.stop();
    await this.#reconciler?.stop();
    await this.#applying;
    await this.#engine?.close();
  }

  /** Workloads are read differently now: what is followed, asked about and charged follows. */
  async #applyFacts(served: ServedKinds, reconciler: Reconciler, all: boolean): Promise<void> {
    try {
      if (all) {
        await served.rediscover();
        await this.#register();
      }
      // Of what depends on nodes, only the number of pods of a DaemonSet changes while they come and go.
      await reconciler.reread(({ evaluator }) => all || evaluator.kind === 'DaemonSet');
      this.#controller?.factsChanged();
    } catch (error) {
      this.#options.log.warn({ err: error }, 'applying the quota policy failed; the next refresh charges by it');
    }
  }

  async #register(): Promise<void> {
    const { api, target, webhookName: name, unlabelled, certificate, currentCertificate, evaluation } = this.#options;
    const { callers = ANY_CALLER } = this.#options;
    if (target === null) return;
    const { groupLabel } = evaluation ?? {};
    await register(api, {
      name,
      target: target(this.port),
      prefix: () => callers.prefix,
      unlabelled,
      kinds: this.#kinds?.kinds ?? [],
      requireLabel: this.#facts?.policy.requireLabel ?? null,
      ownNamespace: this.#options.namespace,
      authority: async () => (currentCertificate === undefined ? certificate : await currentCertificate()).authority,
      ...(groupLabel === undefined ? {} : { groupLabel }),
    });
  }

  #keep(clock: Clock): void {
    const { currentCertificate, certificate, log } = this.#options;
    if (currentCertificate === undefined) return;
    this.#keeper = new CertificateKeeper({
      certificate,
      currentCertificate,
      log,
      clock,
      announce: () => this.#register(),
      serve: ({ certificate, key, clientAuthority = null }) =>
        this.#server?.renew({ certificate, key, clientAuthority }),
    });
    this.#keeper.start();
  }

  #openEvents(clock: Clock): Events {
    const { api, log, identity } = this.#options;
    this.#eventWrites = new WorkQueue({ clock, log, capacity: MOST_EVENTS, concurrency: 2 });
    const reporter = { component: COMPONENT, instance: identity, host: null };
    return new Events({ api, queue: this.#eventWrites, reporter, clock });
  }

  #openClock(clock: Clock, events: Events, store: KubeStore): EngineClock {
    const { serverTime, webhookName, log, identity } = this.#options;
    // Of all objects of the quota this one is there as long as the service is.
    const webhooks = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      namespace: '',
      name: webhookName,
      uid: webhookName,
    };
    return new EngineClock({
      serverTime: () => (serverTime === undefined ? clock.now() : serverTime.now()),
      localTime: () => clock.now(),
      ledgerTime: () => store.latestTime,
      changed: (state) => {
        if (state.is === 'inSync') return log.info({}, "the engine's time is the API server's again");
        const { reason, message } = clockWarning(state);
        log.warn({ byMs: Math.round(state.byMs), identity }, message);
        events.record(webhooks, { type: 'Warning', reason, message });
      },
    });
  }

  #candidate(candidacy: Candidacy): Leader {
    const { engine, store, reconciler, served, facts, started, events, clock, clusterClock } = candidacy;
    const { api, log, metrics, namespace, identity, refreshMs, leaseMs, retryMs, arbitrator = null } = this.#options;
    const counted = arbitrator === null ? null : new ArbitratorMetrics();
    if (counted !== null) metrics.page.include(counted.parts);
    return new Leader({
      api,
      log,
      namespace,
      identity,
      clock,
      leaseTime: () => clusterClock.now(),
      name: QUOTA_LEASE,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(retryMs === undefined ? {} : { retryMs }),
      won: async (lastLedAt) => {
        this.#controller = new Controller({
          api,
          engine,
          store,
          reconciler,
          kinds: served.kinds,
          facts,
          started,
          lastLedAt,
          events,
          log,
          clock: clusterClock,
          refreshed: (drift) => metrics.refreshed(drift, clock.now()),
          ...(refreshMs === undefined ? {} : { refreshMs }),
        });
        this.#controller.start();
        if (arbitrator === null || counted === null) return;
        this.#arbitrator = new Arbitrator({
          api,
          events,
          log,
          clock,
          metrics: counted,
          templates: () => facts.policy.consumers,
          storageCapacity: () => facts.policy.storageCapacity,
          beyondQuota: () =>
            (facts.policy.evictBeyondQuotaFirst ? this.#controller?.podsBeyondQuota() : null) ?? new Set(),
          ...arbitrator,
        });
        this.#arbitrator.start();
      },
      lost: async () => {
        await Promise.all([this.#controller?.stop(), this.#arbitrator?.stop()]);
        [this.#controller, this.#arbitrator] = [null, null];
      },
    });
  }
}
