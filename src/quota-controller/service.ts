import type { ArbitratorPolicy } from '../quota/arbitrator/index.js';
import type { QuotaEvent } from '../quota/core/event.js';
import { createEngine, type QuotaEngine } from '../quota/engine.js';
import { KNOWN_KINDS, type EvaluationOptions } from '../quota/evaluators/evaluate.js';
import { ConsumerReview } from './admission/consumer-review.js';
import { GroupReview } from './admission/group-review.js';
import type { Review, AdmissionResponse } from '../kube/admission/review.js';
import { register } from './admission/webhook-objects.js';
import type { WebhookTarget } from '../kube/admission/webhook-registration.js';
import { WebhookServer } from '../kube/admission/webhook-server.js';
import { ANY_CALLER, type ReviewCallers } from '../kube/admission/review-callers.js';
import { NamespaceAccess } from './admission/namespace-access.js';
import type { ServerTime } from '../kube/server-time.js';
import { WorkloadReview } from './admission/workload-review.js';
import type { IssuedCertificate } from '../kube/admission/certificate-secret.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import { ArbitratorMetrics } from './arbitrator/arbitrator-metrics.js';
import { Arbitrator } from './arbitrator/arbitrator.js';
import { Events, QUOTA_COMPONENT } from '../kube/events.js';
import { WorkQueue } from '../kube/work-queue.js';
import { Controller } from './controller/controller.js';
import { ClusterFacts, type FactsChange } from './policy/cluster-facts.js';
import type { QuotaPolicy } from './policy/policy-object.js';
import { Leader } from '../kube/leader.js';
import { ServedKinds } from './served-kinds.js';
import { EngineClock, clockWarning } from './engine-clock.js';
import type { StructuredLog } from '../host/structured-log.js';
import { QUOTA_LEASE } from '../kube/quota/names.js';
import type { GroupObject } from '../kube/quota/group-object.js';
import { WorkloadReader } from './workload-reader.js';
import { Reconciler } from './reconciler/reconciler.js';
import type { QuotaMetrics } from './quota-metrics.js';
import { KubeStore } from './store/kube-store.js';
import { systemClock, type Clock } from '../host/clock.js';

export interface QuotaServiceOptions {
  readonly api: WatchableApi;
  /** The clock of the API server; by default this machine's clock. */
  readonly serverTime?: ServerTime;
  readonly log: StructuredLog;
  readonly metrics: QuotaMetrics;
  readonly address: string;
  readonly port: number;
  /** Separate port of the probes on the same address, without TLS; null: probes only on `port`. */
  readonly probePort?: number | null;
  readonly certificate: IssuedCertificate;
  /** Restricts the callers of reviews; by default every caller that reaches the port. */
  readonly callers?: ReviewCallers;
  /** Returns the certificate to serve, called every minute; by default the certificate never changes. */
  readonly currentCertificate?: () => Promise<IssuedCertificate>;
  /**
   * How the API server reaches this service, given its port; null if an administrator manages the webhook
   * configuration.
   */
  readonly target: ((port: number) => WebhookTarget) | null;
  /**
   * Whether every namespace may use a group if no group on its path to the root has a namespaceSelector; default true.
   */
  readonly openGroups?: boolean;
  readonly webhookName: string;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Namespace of the Lease. */
  readonly namespace: string;
  readonly identity: string;
  readonly evaluation?: EvaluationOptions;
  /** Configuration of the arbitrator, which runs on the leader; null for no arbitrator. */
  readonly arbitrator?: ArbitratorConfig | null;
  readonly clock?: Clock;
  /** Called with every event of this replica after it is durable. */
  readonly audited?: (event: QuotaEvent) => void;
  readonly kindsMs?: number;
  readonly reservationMs?: number;
  readonly othersMs?: number;
  readonly refreshMs?: number;
  readonly leaseMs?: number;
  readonly retryMs?: number;
}

/** Input of the leader's parts. */
interface Candidacy {
  readonly engine: QuotaEngine;
  readonly store: KubeStore;
  readonly reconciler: Reconciler;
  readonly served: ServedKinds;
  readonly facts: ClusterFacts;
  /** The policy with which the engine was created. */
  readonly started: QuotaPolicy;
  readonly events: Events;
  /** This machine's clock, for the duration of a lease. */
  readonly clock: Clock;
  /** Clock with the API server's time. */
  readonly clusterClock: Clock;
}

/** Configuration of the arbitrator; see `ArbitratorOptions`. */
export interface ArbitratorConfig {
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  readonly writeConcurrency?: number;
}

/** How long an admission is reserved until its object is observed. */
const RESERVATION_MS = 60_000;
/** How long stopped pods are kept in the ledger for late events. */
const LATE_EVENTS_MS = 600_000;
/** Delay in which changes of policy and nodes are collected. */
const FACTS_MS = 200;
/** Maximum number of queued events while the API server is unreachable; the oldest are dropped first. */
const MAX_EVENTS = 512;

/** Quota on Kubernetes: admission webhooks and reconciler on every replica, controller and arbitrator on the leader. */
export class QuotaService {
  readonly #options: QuotaServiceOptions;
  #engine: QuotaEngine | null = null;
  #reconciler: Reconciler | null = null;
  #engineClock: EngineClock | null = null;
  #server: WebhookServer | null = null;
  #leader: Leader | null = null;
  #controller: Controller | null = null;
  #arbitrator: Arbitrator | null = null;
  #kinds: ServedKinds | null = null;
  #facts: ClusterFacts | null = null;
  #factsPending: (() => void) | null = null;
  #applying: Promise<void> = Promise.resolve();
  #eventWrites: WorkQueue | null = null;

  constructor(options: QuotaServiceOptions) {
    this.#options = options;
  }

  /** The port that the webhooks listen on. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** The separate port of the probes; null for none. */
  get probePort(): number | null {
    return this.#server?.probePort ?? null;
  }

  get leading(): boolean {
    return this.#leader?.leading ?? false;
  }

  /** Why the service cannot decide yet; null once it can. */
  get notReady(): string | null {
    if (this.#reconciler?.synced !== true) return 'the ledger is not in sync with the API server yet';
    return this.#engineClock?.notReady ?? null;
  }

  /** Rejects if the API server does not answer or the address cannot be listened on. */
  async start(): Promise<void> {
    const {
      api,
      log,
      metrics,
      evaluation = {},
      reservationMs = RESERVATION_MS,
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
    /** The API server's time with this machine's timers. */
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
    const { address, port, probePort = null, callers = ANY_CALLER, currentCertificate } = this.#options;
    this.#server = new WebhookServer({
      address,
      port,
      probePort,
      certificate,
      ...(currentCertificate === undefined ? {} : { currentCertificate }),
      callers,
      reviews,
      notReady: () => this.notReady,
      decided: (path, response, seconds) => metrics.decided(path, response, seconds),
      metrics: metrics.page,
      register: () => this.#register(),
      log,
      clock,
    });
    await this.#server.start();
    this.#kinds = served;
    await this.#register();
    this.#leader = this.#leaderOf({ engine, store, reconciler, served, facts, started, events, clock, clusterClock });
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
    this.#server.keepCertificate();
  }

  /** The order matters: first no new decisions, then pending writes, then another replica may lead. */
  async stop(): Promise<void> {
    this.#factsPending?.();
    await Promise.all([this.#kinds?.stop(), this.#facts?.stop()]);
    await this.#server?.stop();
    await this.#leader?.stop();
    await this.#eventWrites?.stop();
    await this.#reconciler?.stop();
    await this.#applying;
    await this.#engine?.close();
  }

  /** Applies a change of policy or nodes: discovers kinds, updates webhooks, and evaluates workloads again. */
  async #applyFacts(served: ServedKinds, reconciler: Reconciler, all: boolean): Promise<void> {
    try {
      if (all) {
        await served.rediscover();
        await this.#register();
      }
      // Only the demand of a DaemonSet, its number of pods, depends on the nodes.
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

  #openEvents(clock: Clock): Events {
    const { api, log, identity } = this.#options;
    this.#eventWrites = new WorkQueue({ clock, log, capacity: MAX_EVENTS, concurrency: 2 });
    const reporter = { component: QUOTA_COMPONENT, instance: identity, host: null };
    return new Events({ api, queue: this.#eventWrites, reporter, clock });
  }

  #openClock(clock: Clock, events: Events, store: KubeStore): EngineClock {
    const { serverTime, webhookName, log, identity } = this.#options;
    // Events about the clock are recorded on this object, which exists as long as the service.
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

  #leaderOf(candidacy: Candidacy): Leader {
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
