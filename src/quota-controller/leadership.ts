import type { Clock } from '../host/clock.js';
import type { EventRecorder } from '../kube/events.js';
import { Leader } from '../kube/leader.js';
import { QUOTA_LEASE } from '../kube/quota/names.js';
import { ArbitratorMetrics } from './arbitrator/arbitrator-metrics.js';
import { Arbitrator } from './arbitrator/arbitrator.js';
import { Controller } from './controller/controller.js';
import { GroupArbitrator } from './give-back/group-arbitrator.js';
import type { WaitingWorkloads } from './give-back/waiting-workloads.js';
import { NamespaceAccess } from './policy/namespace-access.js';
import { AdmissionCheckController } from './kueue/admission-check.js';
import type { KueueObjects } from './workloads/kueue-objects.js';
import type { WorkloadReader } from './workloads/workload-reader.js';
import type { OpenEngine } from './open-engine.js';
import type { ClusterFacts } from './policy/cluster-facts.js';
import type { QuotaPolicy } from './policy/policy-object.js';
import { CoverKeeper } from './reconciler/cover-keeper.js';
import type { OwnedPods } from './workloads/owned-pods.js';
import type { Reconciler } from './reconciler/reconciler.js';
import { RESERVATION_MS, type ArbitratorConfig, type QuotaServiceOptions } from './service-options.js';

export interface LeadershipOptions
  extends
    Pick<QuotaServiceOptions, 'api' | 'log' | 'metrics' | 'namespace' | 'identity'>,
    Pick<QuotaServiceOptions, 'arbitrator' | 'refreshMs' | 'leaseMs' | 'retryMs'>,
    Pick<QuotaServiceOptions, 'openGroups' | 'reservationMs'>,
    Pick<OpenEngine, 'engine' | 'store' | 'clusterClock'> {
  readonly reconciler: Reconciler;
  readonly owned: OwnedPods;
  readonly reader: WorkloadReader;
  /** Null if Kueue does not ask this quota. */
  readonly kueue: KueueObjects | null;
  readonly facts: ClusterFacts;
  /** Null without an arbitrator. */
  readonly waiting: WaitingWorkloads | null;
  /** The policy with which the engine was created. */
  readonly started: QuotaPolicy;
  readonly events: EventRecorder;
  /** This machine's clock, for the duration of a lease. */
  readonly clock: Clock;
}

/** The work that only the holder of a Lease does, one replica at a time: the controller and the arbitrator. */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #leader: Leader;
  readonly #arbitratorMetrics = new ArbitratorMetrics();
  #controller: Controller | null = null;
  #arbitrator: Arbitrator | null = null;
  #admissionCheck: AdmissionCheckController | null = null;
  #covers: CoverKeeper | null = null;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    const { api, log, namespace, identity, clock, clusterClock, leaseMs, retryMs, arbitrator = null } = options;
    if (arbitrator !== null) options.metrics.page.include(this.#arbitratorMetrics.parts);
    this.#leader = new Leader({
      api,
      log,
      namespace,
      identity,
      clock,
      leaseTime: () => clusterClock.now(),
      name: QUOTA_LEASE,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(retryMs === undefined ? {} : { retryMs }),
      won: async (lastLedAt) => this.#begin(lastLedAt),
      lost: () => this.#end(),
    });
  }

  /** Whether this replica holds the Lease. */
  get leading(): boolean {
    return this.#leader.leading;
  }

  start(): void {
    this.#leader.start();
  }

  /** Ends the work and releases the Lease. */
  stop(): Promise<void> {
    return this.#leader.stop();
  }

  /** Rereads workloads after a change of the policy or of cluster facts. */
  factsChanged(): void {
    this.#controller?.factsChanged();
  }

  #begin(lastLedAt: number | null): void {
    this.#controller = this.#newController(lastLedAt);
    this.#controller.start();
    const { api, owned, reconciler, clock, log, arbitrator = null, kueue } = this.#options;
    this.#covers = new CoverKeeper({ api, owned, isComplete: () => reconciler.synced, clock, log });
    this.#covers.start();
    if (kueue !== null) {
      this.#admissionCheck = this.#newAdmissionCheck(kueue);
      this.#admissionCheck.start();
    }
    if (arbitrator === null) return;
    this.#arbitrator = this.#newArbitrator(arbitrator);
    this.#arbitrator.start();
  }

  async #end(): Promise<void> {
    const parts = [this.#controller, this.#arbitrator, this.#admissionCheck, this.#covers];
    await Promise.all(parts.map(async (part) => part?.stop()));
    [this.#controller, this.#arbitrator, this.#admissionCheck, this.#covers] = [null, null, null, null];
  }

  #newController(lastLedAt: number | null): Controller {
    const { api, engine, store, reconciler, facts, started, events, log, metrics } = this.#options;
    const { clock, clusterClock, refreshMs } = this.#options;
    return new Controller({
      api,
      engine,
      store,
      reconciler,
      facts,
      started,
      lastLedAt,
      events,
      log,
      clock: clusterClock,
      refreshed: (drift) => metrics.refreshed(drift, clock.now()),
      ...(refreshMs === undefined ? {} : { refreshMs }),
    });
  }

  #newAdmissionCheck(objects: KueueObjects): AdmissionCheckController {
    const { api, engine, reader, reconciler, waiting, log, clusterClock: clock } = this.#options;
    const { openGroups: isOpenByDefault = true, reservationMs = RESERVATION_MS } = this.#options;
    const access = new NamespaceAccess({ api, observed: (name) => reconciler.group(name), isOpenByDefault });
    return new AdmissionCheckController({
      api,
      engine,
      objects,
      reader,
      access,
      reconciler,
      arbitrated: waiting,
      reservationMs,
      clock,
      log,
    });
  }

  #newArbitrator(config: ArbitratorConfig): Arbitrator {
    const { api, events, log, clock, facts, waiting, engine, reconciler } = this.#options;
    const metrics = this.#arbitratorMetrics;
    const podsOfWorkloads = (): ReadonlyMap<string, readonly string[]> =>
      this.#controller?.podsOfWorkloads() ?? new Map<string, readonly string[]>();
    const giveBack =
      waiting === null
        ? null
        : new GroupArbitrator({
            ...{ api, engine, reconciler, waiting, podsOfWorkloads, events, log, metrics, clock },
            borrowedHours: (group) => this.#controller?.borrowedHours(group),
            takeBack: async (uid) => (await this.#admissionCheck?.takeBack(uid)) ?? false,
            mode: config.mode,
            policy: config.policy,
          });
    return new Arbitrator({
      api,
      events,
      log,
      clock,
      metrics,
      afterCycle: giveBack === null ? null : (view, evictor) => giveBack.cycle(view, evictor),
      templates: () => facts.policy.consumers,
      storageCapacity: () => facts.policy.storageCapacity,
      limitsPercent: () => facts.policy.limitsPercent,
      beyondQuota: () => (facts.policy.evictBeyondQuotaFirst ? this.#controller?.podsBeyondQuota() : null) ?? new Set(),
      ...config,
    });
  }
}
