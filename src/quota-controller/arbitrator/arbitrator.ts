import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';
import {
  arbitrate,
  NO_MEMORY,
  evictionTimes,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type Eviction,
  type PlannedStart,
} from '../../quota/index.js';
import type { Quantities } from '../../manifests/quantities.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { ConsumerTemplate } from '../policy/policy-object.js';
import { nominateNode } from '../../kube/pod-writes.js';
import { ALLOCATIONS_PATH, ALLOCATION_KIND, CONSUMERS_PATH, CONSUMER_KIND } from '../../kube/quota/names.js';
import { readAllocation, type AllocationObject, type AllocationStatus } from '../../kube/quota/allocation-object.js';
import { allocationReport, isUrgent, memoryOf } from './allocation-report.js';
import type { ArbitratorMetrics } from './arbitrator-metrics.js';
import type { ClusterPod } from './cluster-pod.js';
import { ClusterView } from './cluster-view.js';
import { readConsumer, type ConsumerObject, type ConsumerStatus } from '../../kube/quota/consumer-object.js';
import { consumerReport } from './consumer-report.js';
import { Evictor } from './evictor.js';
import { createMissingConsumers } from './missing-consumers.js';
import { PlanReport } from './plan-report.js';
import { recordReclaim } from './reclaim-event.js';
import { outdatedIn } from './start-proof.js';
import { servedPolicy } from './served-policy.js';
import { StatusWriter } from './status-writer.js';

export interface ArbitratorOptions {
  readonly api: WatchableApi;
  readonly events: EventRecorder;
  readonly log: StructuredLog;
  readonly metrics: ArbitratorMetrics;
  /** Milliseconds since 1970. */
  readonly clock: Clock;
  /** `plan`: the arbitrator only logs its plan and writes nothing to the API server. */
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  /** Concurrent writes. */
  readonly writeConcurrency?: number;
  /** Templates of Consumers for namespaces without one; the first template that selects a namespace applies. */
  readonly templates?: () => readonly ConsumerTemplate[];
  /** Uids of pods that are evicted before others, because they are beyond their group's quota; default none. */
  readonly beyondQuota?: () => ReadonlySet<string>;
  /** Runs after each cycle and with its view of the cluster; null for nothing. */
  readonly afterCycle?: ((view: ClusterView, evictor: Evictor) => Promise<void>) | null;
  /** The storage capacity; no limit for a resource that it does not name. */
  readonly storageCapacity?: () => Quantities;
  /** The limits to divide, in percent of the cluster; null to divide requests only. */
  readonly limitsPercent?: () => number | null;
}

const PERIOD_MS = 1000;
const WRITES_AT_ONCE = 8;
/** Shapes of pods in the metrics. */
const SHAPES = 20;
/** Plans per cycle: a disruption budget that refuses an eviction causes a new plan. */
const MAX_PLANS = 10;

interface Parts {
  readonly view: ClusterView;
  readonly evictor: Evictor;
  readonly consumers: StatusWriter<ConsumerStatus, ConsumerObject>;
  readonly allocations: StatusWriter<AllocationStatus, AllocationObject>;
}

/**
 * Divides the cluster while it runs. The arbitrator watches namespaces, Consumers, nodes, pods and disruption budgets,
 * writes fair share and usage of each consumer into Allocations, and evicts pods of overused consumers while other
 * consumers wait. Only one replica may run it at a time. The Allocations hold all state, so that another replica can
 * continue.
 */
export class Arbitrator {
  readonly #options: Required<ArbitratorOptions>;
  readonly #planReport: PlanReport;
  readonly #pause: Pause;
  #stopped = false;
  #parts: Parts | null = null;
  #memory: ArbitratorMemory | null = null;
  /** Evictions of the current cycle. */
  readonly #evictions: Eviction[] = [];
  #cycles = 0;
  #lastAt: number | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ArbitratorOptions) {
    this.#options = {
      periodMs: PERIOD_MS,
      writeConcurrency: WRITES_AT_ONCE,
      templates: () => [],
      beyondQuota: () => new Set(),
      storageCapacity: () => new Map(),
      limitsPercent: () => null,
      afterCycle: null,
      ...options,
    };
    this.#pause = new Pause(options.clock);
    this.#planReport = new PlanReport(options.log, options.events);
  }

  /** Completed cycles, including cycles without a change. */
  get cycles(): number {
    return this.#cycles;
  }

  /** Starts the loop; does not wait for the API server. */
  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when the arbitrator evicts and writes nothing any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    await this.#running;
    await this.#parts?.view.stop();
    this.#options.metrics.setAllocations([]);
    this.#options.metrics.readShapes(() => []);
  }

  async #run(): Promise<void> {
    const { log, periodMs } = this.#options;
    while (!this.#stopped) {
      const startedAt = performance.now();
      try {
        this.#parts ??= await this.#open();
        if (!this.#stopped && this.#parts.view.synced) {
          await this.#cycle(this.#parts);
          await this.#options.afterCycle?.(this.#parts.view, this.#parts.evictor);
          this.#cycles++;
        }
      } catch (error) {
        log.warn({ err: error }, 'arbitrator cycle failed; retrying at the next period');
      }
      await this.#pause.for(Math.max(1, periodMs - (performance.now() - startedAt)));
    }
  }

  async #open(): Promise<Parts> {
    const { events, api, log, clock, writeConcurrency: concurrency } = this.#options;
    const served = await servedPolicy(api);
    const view = new ClusterView(api, served, this.#options.storageCapacity, this.#options.limitsPercent);
    view.start();
    this.#options.metrics.readShapes(() => (view.synced ? view.fittingShapes(SHAPES) : []));
    return {
      view,
      evictor: new Evictor({ api, log, now: () => clock.now(), version: served.eviction }),
      consumers: new StatusWriter({
        api,
        collection: CONSUMERS_PATH,
        kind: CONSUMER_KIND,
        known: view.consumers,
        read: readConsumer,
        concurrency,
        isOurs: false,
      }),
      allocations: new StatusWriter({
        api,
        collection: ALLOCATIONS_PATH,
        kind: ALLOCATION_KIND,
        known: view.allocations,
        read: readAllocation,
        concurrency,
        isOurs: true,
        isUrgent,
        written: (object, before, after) => recordReclaim(events, view, object, before, after),
      }),
    };
  }

  async #cycle(parts: Parts): Promise<void> {
    const { view, evictor, consumers, allocations } = parts;
    const { mode, metrics, clock } = this.#options;
    const startedAt = performance.now();
    if (this.#lastAt !== null) metrics.addOverusedTime((startedAt - this.#lastAt) / 1000);
    this.#lastAt = startedAt;
    this.#memory ??= mode === 'on' ? memoryOf(view.allocations.values()) : NO_MEMORY;
    const isIdle =
      this.#memory.wantedSince.size === 0 &&
      this.#memory.evictedAt.size === 0 &&
      this.#memory.nominations.size === 0 &&
      !evictor.hasMarks &&
      !consumers.isBehind &&
      !allocations.isBehind;
    if (!view.takeChanged() && isIdle) return;
    const at = clock.now();
    const pods = view.pods();
    evictor.removeExpired(pods);
    const { plan, capacity } = await this.#decide(parts, pods, this.#memory, at);
    metrics.setAllocations(plan.allocations);
    if (mode === 'on') await this.#report(parts, plan, capacity, at);
    metrics.cycle((performance.now() - startedAt) / 1000);
  }

  /** Makes a plan and executes it. If a disruption budget refuses an eviction, the next plan excludes that pod. */
  async #decide(
    { view, evictor }: Parts,
    pods: ReadonlyMap<string, ClusterPod>,
    memory: ArbitratorMemory,
    at: number,
  ): Promise<{ readonly plan: ArbitrationPlan; readonly capacity: Quantities }> {
    const { mode, policy } = this.#options;
    const beyondQuota = this.#options.beyondQuota();
    let now = memory;
    for (let plans = 1; ; plans++) {
      const situation = view.situation(at, (uid) => evictor.markOf(uid), beyondQuota);
      const { capacity } = situation;
      const plan = arbitrate(situation, now, policy);
      if (mode === 'plan') {
        // In plan mode no eviction happened, so that neither a cooldown nor a nomination applies.
        this.#memory = { ...NO_MEMORY, wantedSince: plan.memory.wantedSince, evictedAt: memory.evictedAt };
        this.#planReport.write(plan, pods);
        return { plan, capacity };
      }
      if (plans === 1) await this.#renewNominations(memory.nominations, pods);
      const executed: PlannedStart[] = [];
      let isOutdated = false;
      for (const start of plan.starts) {
        const result = await this.#execute(evictor, start, pods);
        if (result === 'executed') executed.push(start);
        isOutdated ||= result === 'outdated';
      }
      const notStarted = plan.starts.filter((start) => !executed.includes(start));
      now = {
        ...plan.memory,
        // A further plan of this cycle may evict more pods of the same consumer for the same beneficiary.
        evictedAt: now.evictedAt,
        nominations: new Map(
          [...plan.memory.nominations].filter(([pod]) => notStarted.every((start) => start.pod !== pod)),
        ),
      };
      this.#evictions.push(...executed.flatMap(({ victims }) => victims));
      if (notStarted.length > 0 && !isOutdated && plans < MAX_PLANS && !this.#stopped) continue;
      const evictedAt = evictionTimes(memory.evictedAt, this.#evictions, at, policy.cooldownMs);
      this.#evictions.length = 0;
      this.#memory = { ...now, evictedAt };
      return { plan, capacity };
    }
  }

  /** Nominates nodes again: the scheduler clears the nomination of a pod whenever it tries to schedule the pod. */
  async #renewNominations(
    nominations: ArbitratorMemory['nominations'],
    pods: ReadonlyMap<string, ClusterPod>,
  ): Promise<void> {
    for (const [uid, { node, isExternal = false }] of nominations) {
      const pod = pods.get(uid);
      if (pod === undefined || isExternal || pod.nominatedNode === node || this.#stopped) continue;
      await this.#nominate(pod, node);
    }
  }

  async #nominate(pod: ClusterPod, node: string | null): Promise<boolean> {
    const { api, log } = this.#options;
    const answer = await nominateNode(api, pod, node);
    if (!answer.ok)
      log.warn(
        { namespace: pod.namespace, pod: pod.name, node, code: answer.code, reason: answer.message },
        'nominating a node for a pod failed',
      );
    return answer.ok;
  }

  /** Makes room for a waiting pod by evicting all victims of the start or none. */
  async #execute(
    evictor: Evictor,
    start: PlannedStart,
    pods: ReadonlyMap<string, ClusterPod>,
  ): Promise<'executed' | 'refused' | 'outdated'> {
    const { events, log, metrics } = this.#options;
    const victims = start.victims.flatMap((eviction) => {
      const pod = pods.get(eviction.pod);
      return pod === undefined ? [] : [{ eviction, pod }];
    });
    const waiting = pods.get(start.pod);
    if (this.#stopped || waiting === undefined || victims.length < start.victims.length) return 'refused';
    const shown = { waiting, node: start.node, victims: victims.map(({ pod }) => pod), pods };
    const isLeaving = (uid: string): boolean => evictor.markOf(uid).isLeaving;
    const outdated = await outdatedIn(this.#options.api, { ...shown, isLeaving });
    if (outdated !== null) {
      log.warn({ starts: waiting.name, node: start.node, reason: outdated }, 'nothing evicted on outdated data');
      metrics.evicted('outdated');
      return 'outdated';
    }
    if (!(await evictor.mayEvict(victims.map(({ pod }) => pod)))) {
      metrics.evicted('refused');
      return 'refused';
    }
    // The nomination comes before the first eviction: otherwise other pods could take the room first.
    if (!(await this.#nominate(waiting, start.node))) return 'refused';
    for (const { eviction, pod } of victims) {
      const result = await evictor.evict(pod);
      metrics.evicted(result);
      if (result !== 'evicted') {
        await this.#nominate(waiting, null);
        return 'refused';
      }
      const { uid, namespace, name } = pod;
      const { resource, beneficiaries } = eviction;
      log.info(
        { namespace, pod: name, podUid: uid, resource, for: beneficiaries, starts: waiting.name, node: start.node },
        'pod evicted',
      );
      const cause =
        namespace === waiting.namespace
          ? `its priority ${pod.priority} is lower than ${waiting.priority}`
          : `namespace ${namespace} uses more ${resource} than its fair share`;
      // Readers of this namespace may not know the pods of others.
      const successor = namespace === waiting.namespace ? `pod ${waiting.name}` : 'a pod of another namespace';
      const message = `evicted: ${cause}; ${successor} starts on node ${start.node} in its place`;
      events.record(podSubject(pod), { type: 'Warning', reason: 'Reclaimed', message });
    }
    return 'executed';
  }

  async #report(
    { view, consumers, allocations }: Parts,
    plan: ArbitrationPlan,
    capacity: Quantities,
    now: number,
  ): Promise<void> {
    const memory = this.#memory ?? NO_MEMORY;
    const problems = view.problems(capacity);
    await createMissingConsumers(view, { ...this.#options, goesOn: () => !this.#stopped });
    await consumers.round(
      new Map(
        view.consumers
          .values()
          .map((consumer) => [consumer.name, consumerReport(consumer, problems.get(consumer.name) ?? [], now)]),
      ),
    );
    await allocations.round(
      new Map(
        plan.allocations.map((allocation) => {
          const consumer = view.consumers.get(allocation.name);
          const weight = consumer?.spec.weight ?? 1;
          return [
            allocation.name,
            allocationReport(
              { allocation, weight, written: consumer?.written, memory, now },
              view.allocations.get(allocation.name)?.status ?? {},
            ),
          ];
        }),
      ),
    );
  }
}
