import type { Cluster, Evaluation } from '../cluster/placement/cluster.js';
import { needsGpu } from '../cluster/placement/demand.js';
import type { ClusterNode } from '../cluster/placement/node.js';
import { isResolvable, refusalText, type MisfitReason } from '../cluster/placement/fit-result.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { Pod } from '../kube/pod.js';
import type { BindingArguments, ExtenderArguments, PreemptionArguments } from './arguments.js';
import { CallTurns, type CallBudget, type CallLimits } from '../cluster/call-budget.js';
import type { ClusterCache } from '../cluster/cluster-cache.js';
import type { DecisionMetrics } from './extender-metrics.js';
import { GroupRoom } from './group-room.js';
import type { PodGroup } from '../cluster/pod-groups.js';
import type { PodWriter } from './pod-writer.js';
import { viewPod, type PodView } from '../cluster/pod-view.js';
import { preempt } from '../cluster/preemption.js';
import { EvictionLimits, runningMembers, type EvictionLimitSource } from '../cluster/eviction-limits.js';
import { priorities } from '../cluster/placement/priorities.js';
import {
  filterError,
  filterResult,
  nodeNames,
  preemptionResult,
  type BindingResult,
  type FilterResult,
  type HostPriority,
  type PreemptionResult,
} from './results.js';
import { SentBindings } from './sent-bindings.js';
import { templateNodes } from './template-nodes.js';

/** Which of the nodes that a pod fits on are offered to the scheduler. */
export const OFFERS = ['all', 'best'] as const;

export type Offer = (typeof OFFERS)[number];

export interface ExtenderServiceOptions {
  /**
   * `best`: only the nodes with the lowest cost, which have the highest score, at most 16 of them. The scheduler then
   * scores few nodes itself, and gets the reasons of refusals only if no node fits; no other extender may follow.
   */
  readonly offer: Offer;
  /** How long GPUs stay reserved for a pod that the scheduler has not bound yet. */
  readonly reservationTtlMs: number;
  /**
   * How long a call waits for a pod that would fit without the reservations of other pods. The scheduler usually
   * chooses the nodes of those pods much sooner.
   */
  readonly settleTimeoutMs: number;
  /** How long one call may compute; by default far shorter than the scheduler waits for an answer. */
  readonly callLimits?: CallLimits;
}

/** Maximum number of equally good nodes that `best` offers: the scheduler's own scores choose among them. */
const MOST_OFFERED = 16;

/** Maximum number of repeated evaluations of a pod because other pods took the room that it was offered. */
const MOST_TRIES = 3;

/**
 * A call is answered after this time even if the API server does not answer: the shipped configurations let the
 * scheduler wait five seconds (`httpTimeout`), and it discards a later answer.
 */
export const ANSWER_WITHIN_MS = 4_000;

/**
 * Answers the scheduler's calls. Long answers are computed in turns, within one budget of CPU time for a call; a pod
 * that is blocked by other reservations waits a moment for their decisions.
 */
export class ExtenderService {
  readonly #cluster: Cluster;
  readonly #cache: ClusterCache;
  readonly #limits: EvictionLimitSource;
  readonly #clock: Clock;
  readonly #metrics: DecisionMetrics;
  readonly #options: ExtenderServiceOptions;
  readonly #notReady: () => string | null;
  readonly #sent: SentBindings;
  readonly #groups: GroupRoom;
  readonly #turns: CallTurns;

  constructor(parts: {
    readonly cluster: Cluster;
    readonly cache: ClusterCache;
    readonly limits: EvictionLimitSource;
    readonly writer: PodWriter;
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: DecisionMetrics;
    readonly options: ExtenderServiceOptions;
    /** Why this replica may not send bindings now; null if it may. */
    readonly notReady: () => string | null;
  }) {
    this.#cluster = parts.cluster;
    this.#cache = parts.cache;
    this.#limits = parts.limits;
    this.#clock = parts.clock;
    this.#metrics = parts.metrics;
    this.#options = parts.options;
    this.#turns = new CallTurns(parts.options.callLimits);
    this.#notReady = parts.notReady;
    this.#sent = new SentBindings(parts);
    this.#groups = new GroupRoom({
      ...parts,
      minimums: parts.limits,
      boundTo: (uid) => this.#boundTo(uid),
    });
  }

  /**
   * The nodes that the pod fits on, or the best of them. Room for the pod is reserved on each until its node is known.
   * A repeated call for a pod replaces its earlier reservation. A call with nodes that do not exist is a simulation and
   * reserves nothing.
   */
  async filter(given: ExtenderArguments): Promise<FilterResult> {
    const names = nodeNames(given);
    const pod = this.#viewOf(given.pod);
    if (pod.brokenRule !== null) return this.#refuseAll(given, names, pod.brokenRule);
    if (!needsGpu(pod.demand)) return filterResult(given, names, {}, {});
    const templates = templateNodes(given, this.#cluster.nodes);
    if (templates.size > 0) return this.#filterResult(given, pod, await this.#simulate(pod, names, templates));
    if (pod.uid === '') return filterError('the pod has no UID');
    await this.#settled(pod.uid, ANSWER_WITHIN_MS);
    const bound = this.#boundTo(pod.uid);
    if (bound !== null) return onlyNode(given, names, bound);
    const group = this.#groups.of(pod);
    this.#cluster.reservations.drop(pod.uid);
    this.#cluster.reservations.dropNominatedBelow(pod.priority);
    const evaluation = await this.#evaluateAndReserve(pod, group, names);
    const boundMeanwhile = this.#boundTo(pod.uid);
    if (boundMeanwhile !== null) {
      this.#cluster.reservations.drop(pod.uid);
      return onlyNode(given, names, boundMeanwhile);
    }
    if (evaluation.fits.length === 0) this.#cache.keepNominated(pod.uid);
    if (group === null || evaluation.fits.length > 0) return this.#filterResult(given, pod, evaluation);
    const ofVictims = this.#groups.nodeOfVictims(pod, group, evaluation);
    group.hasFailed = ofVictims === null;
    return this.#filterResult(given, pod, ofVictims ?? evaluation);
  }

  /** Scores of 0 to 10 by the policy; the best node has 10. Changes nothing. */
  async prioritize(given: ExtenderArguments): Promise<HostPriority[]> {
    const names = nodeNames(given);
    const pod = this.#viewOf(given.pod);
    const known: ClusterNode[] = [];
    for (const name of names) {
      const node = this.#cluster.nodes.get(name);
      if (node !== undefined) known.push(node);
    }
    const budget = this.#turns.budget();
    const scores = priorities(await budget.run(this.#cluster.costsInTurns(pod.demand, known, budget)));
    if (budget.wasSpent) this.#metrics.cutOff('prioritize');
    let next = 0;
    return names.map((name) => ({ Host: name, Score: known[next]?.name === name ? (scores[next++] as number) : 0 }));
  }

  /** Chooses the GPUs, and binds the pod with the choice in its annotations. An empty error means success. */
  async bind(given: BindingArguments): Promise<BindingResult> {
    const uid = given.podUid;
    const deadline = this.#clock.now() + ANSWER_WITHIN_MS;
    // Of several calls that waited for the same write, each waits for the writes of those before it.
    while (this.#sent.writing(uid) !== null)
      if (!(await this.#settled(uid, deadline - this.#clock.now())))
        return { Error: 'the API server has not answered an earlier binding of the pod yet' };
    // The Lease may have been lost while the call waited.
    const waiting = this.#notReady();
    if (waiting !== null) return { Error: waiting };
    const bound = this.#boundTo(uid);
    if (bound !== null && bound !== given.node) return { Error: `the pod is already on ${bound}` };
    // The scheduler lost an earlier answer. The GPUs of a bound pod are those that the API server has.
    if (this.#cache.isBound(uid)) return { Error: '' };
    const demand = this.#cluster.reservations.get(uid)?.demand ?? this.#cache.pods.get(uid)?.demand;
    if (demand === undefined)
      return { Error: `pod ${given.podNamespace}/${given.podName} (${uid}) is not known (yet)` };
    const pod = { namespace: given.podNamespace, name: given.podName, uid };
    const writing = this.#sent.bind(pod, given.node, demand, () => this.#metrics.conflict());
    const late = {
      Error: `timeout: the API server did not answer the binding within ${ANSWER_WITHIN_MS / 1000} s; the GPUs stay reserved until the result is known`,
    };
    return this.#before(deadline, writing, late);
  }

  /**
   * For each node the victims that must be evicted so that the pod gets its GPUs: the proposed ones, and more if
   * needed. Nodes on which no victims suffice are left out.
   */
  async preempt(given: PreemptionArguments): Promise<PreemptionResult> {
    const pod = this.#viewOf(given.pod);
    const budget = this.#turns.budget();
    const { pods, groups } = this.#cache;
    const limits = new EvictionLimits(this.#limits, (group) => runningMembers(groups, pods, group));
    const state = { cluster: this.#cluster, pods, limits, nowMs: this.#clock.now() };
    const victims = await budget.run(preempt(state, pod, given.victims, budget));
    if (budget.wasSpent) this.#metrics.cutOff('preempt');
    this.#cache.preemptionAnswered(pod.uid, new Map([...victims].map(([node, { uids }]) => [node, uids])));
    return preemptionResult(victims);
  }

  /** Drops expired reservations and decisions. Call it about once a second. */
  sweep(): void {
    const now = this.#clock.now();
    const expired = this.#cluster.reservations.expire(now);
    if (expired.length > 0) this.#metrics.expired(expired.length);
    this.#sent.sweep();
    if (expired.length > 0) this.#cache.changed();
  }

  /** Whether a binding is being written. */
  get isWriting(): boolean {
    return this.#sent.isWriting;
  }

  /** Drops the reservations and decisions of this replica: another replica decides from now on. */
  forget(): void {
    this.#cluster.reservations.clear();
    this.#sent.forget();
  }

  /** Waits for a running binding to end; false if it takes longer. */
  async #settled(uid: string, withinMs: number): Promise<boolean> {
    const writing = this.#sent.writing(uid);
    if (writing === null) return true;
    return this.#before(
      this.#clock.now() + withinMs,
      writing.then(() => true),
      false,
    );
  }

  async #before<T>(deadlineMs: number, answer: Promise<T>, late: T): Promise<T> {
    let cancel = (): void => undefined;
    const timer = new Promise<T>((resolve) => {
      cancel = this.#clock.after(Math.max(0, deadlineMs - this.#clock.now()), () => resolve(late));
    });
    try {
      return await Promise.race([answer, timer]);
    } finally {
      cancel();
    }
  }

  /** The pod's node as far as known: the node that it appeared on, or the node of a binding that was sent. */
  #boundTo(uid: string): string | null {
    return this.#cache.nodeOf(uid) ?? this.#sent.nodeOf(uid);
  }

  async #simulate(
    pod: PodView,
    names: readonly string[],
    templates: ReadonlyMap<string, ClusterNode>,
  ): Promise<Evaluation> {
    const budget = this.#turns.budget();
    return this.#ended(await budget.run(this.#cluster.judge(pod.demand, names, budget, { templates })), budget);
  }

  /**
   * Evaluates the nodes and reserves room on those that fit. Room is checked again in the turn in which it is reserved:
   * of several pods that waited for the same decision, each sees the reservations of the earlier pods.
   */
  async #evaluateAndReserve(pod: PodView, group: PodGroup | null, names: readonly string[]): Promise<Evaluation> {
    const deadline = this.#clock.now() + this.#options.settleTimeoutMs;
    const budget = this.#turns.budget();
    for (let tries = 1; ; tries++) {
      const evaluation = await budget.run(this.#cluster.judge(pod.demand, names, budget));
      const isReserved = evaluation.refused.some(({ refusal }) => refusal === 'reserved');
      if (evaluation.fits.length === 0 && isReserved && !budget.wasSpent && this.#groups.release(group)) continue;
      const mayFit = isReserved && this.#cluster.reservations.undecided;
      const leftMs = deadline - this.#clock.now();
      if (evaluation.fits.length > 0) {
        const offered = await this.#reserve(pod, group, evaluation, budget);
        if (offered.fits.length > 0 || budget.wasSpent || tries >= MOST_TRIES) return this.#ended(offered, budget);
        // Other pods took the room between two turns.
        continue;
      }
      if (!mayFit || leftMs <= 0 || budget.wasSpent) return this.#ended(evaluation, budget);
      this.#metrics.waited();
      await this.#change(leftMs);
      tries = 0;
    }
  }

  /** Reserves room on the nodes that are offered, and leaves out those whose room was taken meanwhile. */
  async #reserve(
    pod: PodView,
    group: PodGroup | null,
    evaluation: Evaluation,
    budget: CallBudget,
  ): Promise<Evaluation> {
    const best =
      group === null
        ? await this.#best(pod, evaluation.fits, budget)
        : await this.#groups.bestNode(pod, group, evaluation.fits, budget);
    const expiresMs = this.#clock.now() + this.#options.reservationTtlMs;
    const fits = await budget.run(this.#cluster.reserveInTurns(pod.uid, pod.demand, best, expiresMs, budget));
    if (group !== null) group.members.set(pod.uid, fits[0]?.name ?? null);
    return { ...evaluation, fits };
  }

  #ended(evaluation: Evaluation, budget: CallBudget): Evaluation {
    if (budget.wasSpent) this.#metrics.cutOff('filter');
    return evaluation;
  }

  /** The view of the pod that the watch has made, unless the scheduler sends another version of it. */
  #viewOf(pod: Pod): PodView {
    const known = this.#cache.pods.get(pod.uid);
    const isSame = known !== undefined && known.resourceVersion !== '' && known.resourceVersion === pod.resourceVersion;
    return isSame ? known : viewPod(pod);
  }

  async #best(pod: PodView, fits: readonly ClusterNode[], budget: CallBudget): Promise<readonly ClusterNode[]> {
    if (this.#options.offer === 'all') return fits;
    return spread(await budget.run(this.#cluster.allCheapest(pod.demand, fits, budget)), MOST_OFFERED);
  }

  async #change(withinMs: number): Promise<void> {
    let forget = (): void => undefined;
    let cancelTimer = (): void => undefined;
    await new Promise<void>((resolve) => {
      forget = this.#cache.onChange(resolve);
      cancelTimer = this.#clock.after(withinMs, resolve);
    });
    cancelTimer();
    forget();
  }

  #filterResult(given: ExtenderArguments, pod: PodView, evaluation: Evaluation): FilterResult {
    const failed: Record<string, string> = {};
    const unresolvable: Record<string, string> = {};
    const isTold = this.#options.offer === 'all' || evaluation.fits.length === 0;
    const kinds = new Map<
      MisfitReason,
      { readonly text: string; readonly into: Record<string, string>; count: number }
    >();
    for (const { name, refusal } of evaluation.refused) {
      let kind = kinds.get(refusal);
      if (kind === undefined)
        kinds.set(
          refusal,
          (kind = {
            text: refusalText(refusal, pod.demand),
            into: isResolvable(refusal) ? failed : unresolvable,
            count: 0,
          }),
        );
      if (isTold) kind.into[name] = kind.text;
      kind.count++;
    }
    for (const [refusal, { count }] of kinds) this.#metrics.refused(refusal, count);
    return filterResult(
      given,
      evaluation.fits.map((node) => node.name),
      failed,
      unresolvable,
    );
  }

  #refuseAll(given: ExtenderArguments, names: readonly string[], rule: string): FilterResult {
    this.#metrics.refused('bad-request', 1);
    return filterResult(given, [], {}, Object.fromEntries(names.map((name) => [name, rule])));
  }
}

function onlyNode(given: ExtenderArguments, names: readonly string[], bound: string): FilterResult {
  const others = names.filter((name) => name !== bound);
  return filterResult(
    given,
    names.filter((name) => name === bound),
    Object.fromEntries(others.map((name) => [name, `the pod is already on ${bound}`])),
    {},
  );
}

/** At most `most` of the elements, at equal distances: the scheduler's order alternates between zones. */
function spread<T>(elements: readonly T[], most: number): readonly T[] {
  if (elements.length <= most) return elements;
  return Array.from({ length: most }, (_, at) => elements[Math.floor((at * elements.length) / most)] as T);
}
