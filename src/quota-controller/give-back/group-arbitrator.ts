import type { Clock } from '../../host/clock.js';
import type { GroupObject } from '../../kube/quota/group-object.js';
import type { WaitingWorkload } from '../../kube/quota/waiting-workload.js';
import type { Quantities } from '../../manifests/quantities.js';
import {
  arbitrate,
  cohortSituations,
  evictionTimes,
  NO_MEMORY,
  readSpec,
  type ArbitratedGroup,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type ChargedWorkload,
  type Eviction,
  type PlannedStart,
} from '../../quota/internal.js';
import type { ClusterPod } from '../arbitrator/cluster-pod.js';
import type { ClusterView } from '../arbitrator/cluster-view.js';
import type { Evictor } from '../arbitrator/evictor.js';
import type { Reconciler } from '../reconciler/reconciler.js';
import { isRunning, type WorkloadObject } from '../workloads/workload-object.js';
import { numbers, RETRY_WITHIN_MS } from './waiting-workloads.js';
import { stopOf } from './workload-stop.js';
import { WorkloadStopper, type WaitingInGroup, type WorkloadStopperOptions } from './workload-stopper.js';

export interface GroupArbitratorOptions extends WorkloadStopperOptions {
  readonly reconciler: Pick<Reconciler, 'groups' | 'workload'>;
  /** The uids of the pods of each charged workload, by `refKey`. */
  readonly podsOfWorkloads: () => ReadonlyMap<string, readonly string[]>;
  /** Hours that a group had beyond its guaranteed part, by key; undefined where they are not counted. */
  readonly borrowedHours: (group: string) => Quantities | undefined;
  readonly clock: Clock;
  /** `plan`: the plan is only logged. */
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
}

/** Workloads of this namespace are never stopped. */
const SYSTEM_NAMESPACE = 'kube-system';
/** How long a stopped workload counts as leaving although its charge is not released yet. */
const LEAVING_MS = 60_000;
/** How long a workload that cannot be stopped is not tried again, so that other victims come first. */
const DEFERRED_MS = 15_000;
/** Planning uses at most this part of the time: large cohorts are planned less often. */
const CPU_PART = 0.05;

interface Mark {
  readonly leavingUntil: number;
  readonly deferredUntil: number;
}

/** The cluster in one period. */
interface Cluster {
  readonly view: ClusterView;
  readonly evictor: Evictor;
  readonly pods: ReadonlyMap<string, ClusterPod>;
  readonly now: number;
}

/**
 * Gives groups back what they lend: plans with the engine's charges and the waiting workloads, stops whole workloads of
 * borrowers, marks the room that is kept, and starts stopped workloads again when they fit. The groups' objects hold
 * all state but the grace periods, so that another replica can continue.
 */
export class GroupArbitrator {
  readonly #options: GroupArbitratorOptions;
  readonly #stopper: WorkloadStopper;
  #memories = new Map<string, ArbitratorMemory>();
  readonly #marks = new Map<string, Mark>();
  #notBefore = 0;
  #lastPlan = '';

  constructor(options: GroupArbitratorOptions) {
    this.#options = options;
    this.#stopper = new WorkloadStopper(options);
  }

  /** One period. Rejects if the API server fails. */
  async cycle(view: ClusterView, evictor: Evictor): Promise<void> {
    const { reconciler, clock, waiting: list, engine, mode } = this.#options;
    const now = clock.now();
    if (now < this.#notBefore) return;
    const groups = reconciler.groups();
    const waiting = await this.#waitingNow(groups, now);
    if (waiting.length === 0) {
      this.#memories.clear();
      return;
    }
    for (const [key, { leavingUntil, deferredUntil }] of this.#marks)
      if (Math.max(leavingUntil, deferredUntil) <= now) this.#marks.delete(key);
    const cohorts = new Set(waiting.map(({ group }) => list.cohortOf(group)));
    const members = groups.filter(({ spec }) => cohorts.has(list.cohortOf(spec.name)));
    const cluster = { view, evictor, pods: view.pods(), now };
    let plans = this.#plan(groups, members, waiting, cluster);
    if (mode === 'plan') return this.#logPlans(plans);
    if ([...plans.values()].some(({ starts }) => starts.length > 0)) {
      // Other replicas may have changed the groups: workloads are stopped by the newest ledgers only.
      await engine.catchUp(members.map(({ spec }) => spec.name));
      plans = this.#plan(groups, members, waiting, cluster);
    }
    await this.#carryOut(plans, waiting, cluster);
  }

  /** The waiting workloads, without those whose clients have stopped trying. */
  async #waitingNow(groups: readonly GroupObject[], now: number): Promise<readonly WaitingInGroup[]> {
    const { reconciler, waiting } = this.#options;
    const all: WaitingInGroup[] = [];
    for (const { spec, waiting: entries, terminating } of groups) {
      const gone = new Map<string, null>();
      for (const [key, entry] of entries) {
        const object = reconciler.workload(key);
        // The leader that recorded it may have ended before it stopped the workload.
        const isRunning = now - entry.since > LEAVING_MS && object?.demand?.podSets.some(({ count }) => count > 0);
        const isGone =
          entry.stopped === null
            ? now - entry.asked > RETRY_WITHIN_MS
            : object?.group !== spec.name || isRunning === true;
        if (isGone || terminating) gone.set(key, null);
        else all.push({ ...entry, key, group: spec.name });
      }
      if (gone.size > 0) await waiting.write(spec.name, gone);
    }
    return all;
  }

  /** The plan of each cohort. */
  #plan(
    groups: readonly GroupObject[],
    members: readonly GroupObject[],
    waiting: readonly WaitingInGroup[],
    cluster: Cluster,
  ): ReadonlyMap<string, ArbitrationPlan> {
    const { policy } = this.#options;
    const startedAt = performance.now();
    const situations = cohortSituations({
      now: cluster.now,
      groups: groups.flatMap((object) => arbitratedGroup(object, this.#options) ?? []),
      workloads: this.#workloads(members, cluster),
      refused: waiting.map(({ key: id, group: consumer, amounts: uses, since, priority }) => ({
        ...{ id, consumer, uses, since, priority },
      })),
      disruptions: cluster.view.disruptions(),
    });
    const plans = new Map<string, ArbitrationPlan>();
    for (const [cohort, situation] of situations)
      plans.set(
        cohort,
        arbitrate(situation, this.#memories.get(cohort) ?? NO_MEMORY, { ...policy, keepsReserved: false }),
      );
    this.#notBefore = cluster.now + (performance.now() - startedAt) * (1 / CPU_PART - 1);
    return plans;
  }

  /** Stops workloads, marks the room that is kept, and starts stopped workloads that fit. */
  async #carryOut(
    plans: ReadonlyMap<string, ArbitrationPlan>,
    waiting: readonly WaitingInGroup[],
    cluster: Cluster,
  ): Promise<void> {
    const { now } = cluster;
    const memories = new Map<string, ArbitratorMemory>();
    const [firm, next] = [new Set<string>(), new Set<string>()];
    for (const [cohort, plan] of plans) {
      const memory = this.#memories.get(cohort) ?? NO_MEMORY;
      const starts = await this.#execute(plan.starts, waiting, cluster);
      const failed = new Set(plan.starts.filter((start) => !starts.includes(start)).map(({ pod }) => pod));
      const nominations = new Map([...plan.memory.nominations].filter(([pod]) => !failed.has(pod)));
      const evictions = starts.flatMap(({ victims }) => victims);
      const evictedAt = evictionTimes(memory.evictedAt, evictions, now, this.#options.policy.cooldownMs);
      memories.set(cohort, { ...plan.memory, nominations, evictedAt });
      for (const id of [...nominations.keys(), ...plan.fitting]) firm.add(id);
      for (const id of [...plan.due, ...failed]) next.add(id);
    }
    this.#memories = memories;
    await this.#mark(waiting, firm, next);
    // A request for the kept room is admitted once the reviews know of it.
    for (const entry of waiting)
      if (entry.stopped !== null && entry.room === 'Kept' && firm.has(entry.key)) await this.#resume(entry, now);
  }

  /** The charged workloads of the groups, as the arbitrator's running pods. */
  #workloads(groups: readonly GroupObject[], { view, evictor, pods, now }: Cluster): readonly ChargedWorkload[] {
    const { engine, reconciler, podsOfWorkloads } = this.#options;
    const uids = podsOfWorkloads();
    const budgetsOf = view.budgetsByPod();
    return groups.flatMap(({ spec }) =>
      engine.charges(spec.name).map(({ workload: key, amounts, isReserved }): ChargedWorkload => {
        const object = reconciler.workload(key);
        const own = (uids.get(key) ?? []).flatMap((uid) => pods.get(uid) ?? []);
        const budgets = own.map(budgetsOf);
        const mark = this.#marks.get(key);
        return {
          id: key,
          consumer: spec.name,
          uses: numbers(amounts),
          priority: own.length === 0 ? 0 : Math.max(...own.map(({ priority }) => priority)),
          startedAt: own.reduce<number | null>((first, { startedAt, createdAt }) => {
            const at = startedAt ?? createdAt;
            return first === null || at === null ? (first ?? at) : Math.min(first, at);
          }, null),
          budgets: budgets.flat(),
          isProtected:
            isReserved ||
            object === null ||
            object.namespace === SYSTEM_NAMESPACE ||
            stopOf(object.kind) === null ||
            own.some(({ isUnevictable }) => isUnevictable) ||
            budgets.some(({ length }) => length > 1),
          isDeferred:
            (mark !== undefined && now < mark.deferredUntil) || own.some(({ uid }) => evictor.markOf(uid).isProtected),
          // What wants no pods any more is charged until those that it had are gone.
          isLeaving:
            (object !== null && (object.terminating || object.isHeld || !isRunning(object))) ||
            (mark !== undefined && now < mark.leavingUntil),
        };
      }),
    );
  }

  /** Stops the victims of each start; returns the starts whose victims have all been stopped. */
  async #execute(
    starts: readonly PlannedStart[],
    waiting: readonly WaitingInGroup[],
    cluster: Cluster,
  ): Promise<readonly PlannedStart[]> {
    const executed: PlannedStart[] = [];
    for (const start of starts) {
      const beneficiary = waiting.find(({ key }) => key === start.pod);
      // The room is kept before it is free: the reviews know the mark of an earlier period.
      if (beneficiary === undefined || beneficiary.room === null) continue;
      if (await this.#stopAll(start.victims, beneficiary, cluster)) executed.push(start);
      else this.#options.metrics.stopped('refused');
    }
    return executed;
  }

  async #stopAll(
    victims: readonly Eviction[],
    beneficiary: WaitingInGroup,
    { pods, evictor, now }: Cluster,
  ): Promise<boolean> {
    const { reconciler, podsOfWorkloads } = this.#options;
    const uids = podsOfWorkloads();
    const found = victims.flatMap((eviction) => reconciler.workload(eviction.pod) ?? []);
    const podsOf = ({ key }: WorkloadObject): readonly ClusterPod[] =>
      (uids.get(key) ?? []).flatMap((uid) => pods.get(uid) ?? []).filter(({ isLeaving }) => !isLeaving);
    if (found.length < victims.length) return false;
    // The API server applies disruption budgets: it is asked about every pod before the first workload stops.
    for (const workload of found) {
      if (await evictor.mayEvict(podsOf(workload))) continue;
      this.#marks.set(workload.key, { leavingUntil: 0, deferredUntil: now + DEFERRED_MS });
      return false;
    }
    for (const [index, workload] of found.entries()) {
      const isStopped = await this.#stopper.stop(workload, podsOf(workload), evictor, now);
      this.#marks.set(workload.key, {
        leavingUntil: isStopped ? now + LEAVING_MS : 0,
        deferredUntil: isStopped ? 0 : now + DEFERRED_MS,
      });
      if (!isStopped) return false;
      this.#stopper.report(workload, victims[index] as Eviction, beneficiary);
    }
    return true;
  }

  /** Starts a stopped workload, unless that failed a moment ago. */
  async #resume(entry: WaitingInGroup, now: number): Promise<void> {
    const { key } = entry;
    const workload = this.#options.reconciler.workload(key);
    if (workload === null || now < (this.#marks.get(key)?.deferredUntil ?? 0)) return;
    if (await this.#stopper.resume(workload, entry)) this.#marks.delete(key);
    else this.#marks.set(key, { leavingUntil: 0, deferredUntil: now + DEFERRED_MS });
  }

  /** Writes which room is kept for which workloads. */
  async #mark(waiting: readonly WaitingInGroup[], firm: ReadonlySet<string>, next: ReadonlySet<string>): Promise<void> {
    const changes = new Map<string, Map<string, WaitingWorkload>>();
    for (const { key, group, ...entry } of waiting) {
      const room = firm.has(key) ? 'Kept' : next.has(key) ? 'Next' : null;
      if (room === entry.room) continue;
      const changed = changes.get(group) ?? new Map<string, WaitingWorkload>();
      changes.set(group, changed.set(key, { ...entry, room }));
    }
    for (const [group, entries] of changes) await this.#options.waiting.write(group, entries);
  }

  #logPlans(plans: ReadonlyMap<string, ArbitrationPlan>): void {
    const stops = [...plans.values()].flatMap(({ starts }) =>
      starts.map(({ pod, consumer, victims }) => ({
        starts: pod,
        group: consumer,
        stops: victims.map((victim) => victim.pod),
      })),
    );
    const text = JSON.stringify(stops);
    if (text === this.#lastPlan || (stops.length === 0 && this.#lastPlan === '')) return;
    this.#lastPlan = stops.length === 0 ? '' : text;
    this.#options.log.info({ stops }, 'plan of the arbitrator: with --arbitrator=on these workloads would be stopped');
  }
}

/** A group as the arbitrator sees it; null for one that the ledger does not have. */
function arbitratedGroup(
  { spec, weight, reclaim, preemption }: GroupObject,
  { engine, borrowedHours }: Pick<GroupArbitratorOptions, 'engine' | 'borrowedHours'>,
): ArbitratedGroup | null {
  const status = engine.status(spec.name);
  if (status === null) return null;
  const read = readSpec(spec);
  const limits = (amounts: ReadonlyMap<string, number | bigint>): ReadonlyMap<string, number> =>
    new Map([...amounts].map(([key, amount]) => [key, Number(amount)]));
  return {
    name: spec.name,
    parent: status.parent,
    isElastic: status.mode === 'elastic',
    hard: numbers(status.hard),
    ...(read.ok ? { lend: limits(read.lend), borrow: limits(read.borrow) } : {}),
    weight,
    borrowedHours: borrowedHours(spec.name),
    reclaim,
    preemption,
  };
}
