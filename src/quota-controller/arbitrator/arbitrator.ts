import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';
import {
  arbitrate,
  NO_MEMORY,
  remembered,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type Eviction,
  type Quantities,
} from '../../quota/arbitrator/index.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { QuotaLog } from '../log.js';
import { ALLOCATIONS_PATH, ALLOCATION_KIND, API_VERSION, CONSUMERS_PATH, CONSUMER_KIND } from '../names.js';
import { readAllocation, type AllocationObject, type AllocationStatus } from './allocation-object.js';
import { allocationReport, isUrgent, memoryOf } from './allocation-report.js';
import type { ArbitratorMetrics } from './arbitrator-metrics.js';
import type { ClusterPod } from './cluster-pod.js';
import { ClusterView } from './cluster-view.js';
import { readConsumer, type ConsumerObject, type ConsumerStatus } from './consumer-object.js';
import { consumerReport } from './consumer-report.js';
import { Evictor } from './evictor.js';
import { PlanLog } from './plan-log.js';
import { servedPolicy } from './served-policy.js';
import { StatusWriter } from './status-writer.js';

export interface ArbitratorOptions {
  readonly api: WatchableApi;
  readonly events: EventRecorder;
  readonly log: QuotaLog;
  readonly metrics: ArbitratorMetrics;
  /** Milliseconds since 1970. */
  readonly clock: Clock;
  /** `plan`: what it would do is logged, and nothing is written to the API server. */
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  /** How many objects are written at once. */
  readonly writesAtOnce?: number;
}

const PERIOD_MS = 1000;
const WRITES_AT_ONCE = 8;
/** How often a plan is made anew in one cycle because a budget refused what the last one wanted. */
const MOST_PLANS = 10;

interface Parts {
  readonly view: ClusterView;
  readonly evictor: Evictor;
  readonly consumers: StatusWriter<ConsumerStatus, ConsumerObject>;
  readonly allocations: StatusWriter<AllocationStatus, AllocationObject>;
}

/**
 * Divides the cluster while it runs: follows namespaces with their Consumers, nodes, pods and disruption budgets,
 * writes what everybody deserves and has into Allocations, and has pods evicted of who has more than it deserves while
 * others wait. To be run by one replica at a time. All that it has to know of the past stands in the Allocations:
 * another one goes on where it stopped.
 */
export class Arbitrator {
  readonly #options: Required<ArbitratorOptions>;
  readonly #planLog: PlanLog;
  readonly #pause: Pause;
  #stopped = false;
  #parts: Parts | null = null;
  #memory: ArbitratorMemory | null = null;
  #cycles = 0;
  #lastAt: number | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ArbitratorOptions) {
    this.#options = { periodMs: PERIOD_MS, writesAtOnce: WRITES_AT_ONCE, ...options };
    this.#pause = new Pause(options.clock);
    this.#planLog = new PlanLog(options.log);
  }

  /** Cycles that ended, those among them that found nothing new. */
  get cycles(): number {
    return this.#cycles;
  }

  /** Begins; does not wait for the server. */
  start(): void {
    this.#running = this.#run();
  }

  /** Nothing is evicted or written any more once this resolves. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    await this.#running;
    await this.#parts?.view.stop();
    this.#options.metrics.stand([]);
  }

  async #run(): Promise<void> {
    const { log, periodMs } = this.#options;
    while (!this.#stopped) {
      const startedAt = performance.now();
      try {
        this.#parts ??= await this.#begin();
        if (!this.#stopped && this.#parts.view.synced) {
          await this.#cycle(this.#parts);
          this.#cycles++;
        }
      } catch (error) {
        log.warn({ err: error }, 'arbitrator cycle failed; retrying at the next period');
      }
      await this.#pause.for(Math.max(1, periodMs - (performance.now() - startedAt)));
    }
  }

  async #begin(): Promise<Parts> {
    const { api, log, clock, writesAtOnce: atOnce } = this.#options;
    const served = await servedPolicy(api);
    const view = new ClusterView(api, served);
    view.start();
    return {
      view,
      evictor: new Evictor({ api, log, now: () => clock.now(), version: served.eviction }),
      consumers: new StatusWriter({
        api,
        collection: CONSUMERS_PATH,
        kind: CONSUMER_KIND,
        known: view.consumers,
        read: readConsumer,
        atOnce,
        isOurs: false,
      }),
      allocations: new StatusWriter({
        api,
        collection: ALLOCATIONS_PATH,
        kind: ALLOCATION_KIND,
        known: view.allocations,
        read: readAllocation,
        atOnce,
        isOurs: true,
        isUrgent,
        written: (object, before, after) => this.#announce(view, object, before, after),
      }),
    };
  }

  async #cycle(parts: Parts): Promise<void> {
    const { view, evictor, consumers, allocations } = parts;
    const { mode, metrics, clock } = this.#options;
    const startedAt = performance.now();
    if (this.#lastAt !== null) metrics.passed((startedAt - this.#lastAt) / 1000);
    this.#lastAt = startedAt;
    this.#memory ??= mode === 'on' ? memoryOf(view.allocations.values()) : NO_MEMORY;
    const isQuiet =
      this.#memory.noticedAt.size === 0 &&
      this.#memory.evictedAt.size === 0 &&
      !evictor.isWaiting &&
      !consumers.isBehind &&
      !allocations.isBehind;
    if (!view.takeNews() && isQuiet) return;
    const at = clock.now();
    const pods = view.pods();
    evictor.tidy(pods);
    const { plan, capacity } = await this.#decide(parts, pods, this.#memory, at);
    metrics.stand(plan.allocations);
    if (mode === 'on') await this.#report(parts, plan, capacity, at);
    metrics.cycle((performance.now() - startedAt) / 1000);
  }

  /** Makes a plan and carries it out; where a budget refuses, makes another one that does without the pod. */
  async #decide(
    { view, evictor }: Parts,
    pods: ReadonlyMap<string, ClusterPod>,
    memory: ArbitratorMemory,
    at: number,
  ): Promise<{ readonly plan: ArbitrationPlan; readonly capacity: Quantities }> {
    const { mode, policy } = this.#options;
    const gone: Eviction[] = [];
    for (let plans = 1; ; plans++) {
      const situation = view.situation(at, (uid) => evictor.markOf(uid));
      const { capacity } = situation;
      const plan = arbitrate(situation, memory, policy);
      if (mode === 'plan') {
        // Evictions that did not happen are no reason to wait before the next.
        this.#memory = { noticedAt: plan.memory.noticedAt, evictedAt: memory.evictedAt };
        this.#planLog.tell(plan, pods);
        return { plan, capacity };
      }
      const carriedOut = await this.#carryOut(evictor, plan.evictions, pods);
      gone.push(...carriedOut);
      this.#memory = {
        noticedAt: plan.memory.noticedAt,
        evictedAt: remembered(memory.evictedAt, gone, at, policy.cooldownMs),
      };
      if (carriedOut.length === plan.evictions.length || plans === MOST_PLANS || this.#stopped)
        return { plan, capacity };
    }
  }

  /** Those that go. */
  async #carryOut(
    evictor: Evictor,
    evictions: readonly Eviction[],
    pods: ReadonlyMap<string, ClusterPod>,
  ): Promise<readonly Eviction[]> {
    const { events, log, metrics } = this.#options;
    const gone: Eviction[] = [];
    for (const eviction of evictions) {
      const pod = pods.get(eviction.pod);
      if (pod === undefined || this.#stopped) break;
      const result = await evictor.evict(pod);
      metrics.evicted(result);
      if (result !== 'evicted') continue;
      gone.push(eviction);
      const { uid, namespace, name } = pod;
      const { resource, beneficiaries } = eviction;
      log.info({ namespace, pod: name, podUid: uid, resource, for: beneficiaries }, 'pod evicted');
      const message = `evicted: namespace ${namespace} has more ${resource} than it deserves, and ${beneficiaries.join(', ')} waits for it`;
      events.record(podSubject(pod), { type: 'Warning', reason: 'Reclaimed', message });
    }
    return gone;
  }

  async #report(
    { view, consumers, allocations }: Parts,
    plan: ArbitrationPlan,
    capacity: Quantities,
    now: number,
  ): Promise<void> {
    const memory = this.#memory ?? NO_MEMORY;
    const problems = view.problems(capacity);
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
          const weight = view.consumers.get(allocation.name)?.spec.weight ?? 1;
          return [
            allocation.name,
            allocationReport({ allocation, weight, memory, now }, view.allocations.get(allocation.name)?.status ?? {}),
          ];
        }),
      ),
    );
  }

  /** Events at what is new for a namespace; at its Consumer, and at its Allocation where it has none. */
  #announce(
    view: ClusterView,
    { name, uid }: AllocationObject,
    before: AllocationStatus,
    after: AllocationStatus,
  ): void {
    if (before.reclaimAt === after.reclaimAt) return;
    const consumer = view.consumers.get(name);
    const subject = {
      apiVersion: API_VERSION,
      kind: consumer === null ? ALLOCATION_KIND : CONSUMER_KIND,
      namespace: '',
      name,
      uid: consumer?.uid ?? uid,
    };
    const resources = (after.overused ?? []).join(', ');
    this.#options.events.record(
      subject,
      after.reclaimAt === undefined
        ? {
            type: 'Normal',
            reason: 'ReclaimEnded',
            message: 'nobody waits any more for what the namespace had too much of',
          }
        : {
            type: 'Warning',
            reason: 'ReclaimPending',
            message: `the namespace has more than it deserves of ${resources}, and others wait: from ${after.reclaimAt} on pods of it may be evicted`,
          },
    );
  }
}
