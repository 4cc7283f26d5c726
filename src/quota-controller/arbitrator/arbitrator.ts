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
  type PlannedStart,
  type Quantities,
} from '../../quota/arbitrator/index.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { QuotaLog } from '../log.js';
import type { ConsumerTemplate } from '../policy/policy-object.js';
import { selectsLabels } from '../../kube/label-selector.js';
import { nominateNode } from '../../kube/pod-writes.js';
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
  /** Consumers that are made for namespaces without one; the first that selects a namespace counts. */
  readonly templates?: () => readonly ConsumerTemplate[];
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
 * writes what each consumer deserves and uses into Allocations, and evicts pods of overused consumers while
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
  /** Of the cycle that is under way. */
  readonly #evictions: Eviction[] = [];
  #cycles = 0;
  #lastAt: number | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ArbitratorOptions) {
    this.#options = { periodMs: PERIOD_MS, writesAtOnce: WRITES_AT_ONCE, templates: () => [], ...options };
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
      this.#memory.holds.size === 0 &&
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
    let now = memory;
    for (let plans = 1; ; plans++) {
      const situation = view.situation(at, (uid) => evictor.markOf(uid));
      const { capacity } = situation;
      const plan = arbitrate(situation, now, policy);
      if (mode === 'plan') {
        // Evictions that did not happen are no reason to wait before the next, and no room is kept.
        this.#memory = { ...NO_MEMORY, noticedAt: plan.memory.noticedAt, evictedAt: memory.evictedAt };
        this.#planLog.tell(plan, pods);
        return { plan, capacity };
      }
      if (plans === 1) await this.#keepRoom(memory.holds, pods);
      const carriedOut: PlannedStart[] = [];
      for (const start of plan.starts) if (await this.#carryOut(evictor, start, pods)) carriedOut.push(start);
      const notStarted = plan.starts.filter((start) => !carriedOut.includes(start));
      now = {
        ...plan.memory,
        // Another plan of this cycle may take more of the same consumer for the same beneficiary.
        evictedAt: now.evictedAt,
        holds: new Map([...plan.memory.holds].filter(([pod]) => notStarted.every((start) => start.pod !== pod))),
      };
      this.#evictions.push(...carriedOut.flatMap(({ victims }) => victims));
      if (notStarted.length > 0 && plans < MOST_PLANS && !this.#stopped) continue;
      const evictedAt = remembered(memory.evictedAt, this.#evictions, at, policy.cooldownMs);
      this.#evictions.length = 0;
      this.#memory = { ...now, evictedAt };
      return { plan, capacity };
    }
  }

  /** Room that is kept for waiting pods stands in their status; the scheduler takes that away when it looks at them. */
  async #keepRoom(holds: ArbitratorMemory['holds'], pods: ReadonlyMap<string, ClusterPod>): Promise<void> {
    for (const [uid, { node, isAdopted = false }] of holds) {
      const pod = pods.get(uid);
      if (pod === undefined || isAdopted || pod.nominatedNode === node || this.#stopped) continue;
      await this.#nominate(pod, node);
    }
  }

  async #nominate(pod: ClusterPod, node: string | null): Promise<boolean> {
    const { api, log } = this.#options;
    const answer = await nominateNode(api, pod, node);
    if (!answer.ok)
      log.warn(
        { namespace: pod.namespace, pod: pod.name, node, code: answer.code, reason: answer.message },
        'keeping room for a pod failed',
      );
    return answer.ok;
  }

  /** Whether room is made for a waiting pod: all that are in its way go, or none of them. */
  async #carryOut(evictor: Evictor, start: PlannedStart, pods: ReadonlyMap<string, ClusterPod>): Promise<boolean> {
    const { events, log, metrics } = this.#options;
    const victims = start.victims.flatMap((eviction) => {
      const pod = pods.get(eviction.pod);
      return pod === undefined ? [] : [{ eviction, pod }];
    });
    if (this.#stopped || victims.length < start.victims.length) return false;
    if (!(await evictor.mayEvict(victims.map(({ pod }) => pod)))) {
      metrics.evicted('refused');
      return false;
    }
    const waits = pods.get(start.pod);
    // Room is kept before the first pod goes: what comes in its place is as fast as who waits.
    if (waits === undefined || !(await this.#nominate(waits, start.node))) return false;
    for (const { eviction, pod } of victims) {
      const result = await evictor.evict(pod);
      metrics.evicted(result);
      if (result !== 'evicted') {
        await this.#nominate(waits, null);
        return false;
      }
      const { uid, namespace, name } = pod;
      const { resource, beneficiaries } = eviction;
      log.info(
        { namespace, pod: name, podUid: uid, resource, for: beneficiaries, starts: waits.name, node: start.node },
        'pod evicted',
      );
      const message = `evicted: namespace ${namespace} has more ${resource} than it deserves, and pod ${waits.namespace}/${waits.name} starts on node ${start.node} in its place`;
      events.record(podSubject(pod), { type: 'Warning', reason: 'Reclaimed', message });
    }
    return true;
  }

  /** The watch tells of those that were made; one that somebody else made first stays as it is. */
  async #makeConsumers(view: ClusterView): Promise<void> {
    const { api, log, templates } = this.#options;
    const chosen = templates();
    for (const { name, labels } of chosen.length === 0 ? [] : view.withoutConsumer()) {
      const template = chosen.find(({ namespaceSelector }) => selectsLabels(namespaceSelector, labels));
      if (template === undefined || this.#stopped) continue;
      const body = { apiVersion: API_VERSION, kind: CONSUMER_KIND, metadata: { name }, spec: template.spec };
      const answer = await api.request({ method: 'POST', path: CONSUMERS_PATH, body });
      if (answer.ok) {
        const made = readConsumer(answer.body);
        if (made !== null) view.consumers.learn(made);
        log.info({ namespace: name }, 'consumer created by the quota policy');
      } else if (answer.code !== 'already-exists')
        log.warn({ namespace: name, code: answer.code, reason: answer.message }, 'creating a consumer failed');
    }
  }

  async #report(
    { view, consumers, allocations }: Parts,
    plan: ArbitrationPlan,
    capacity: Quantities,
    now: number,
  ): Promise<void> {
    const memory = this.#memory ?? NO_MEMORY;
    const problems = view.problems(capacity);
    await this.#makeConsumers(view);
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
