import { setImmediate as nextTurn } from 'node:timers/promises';
import { FOREIGN_RESOURCES } from '../../gpu/foreign-requests.js';
import { systemClock } from '../../host/clock.js';
import { silentLog } from '../../host/log.js';
import type { Pod } from '../../kube/pod.js';
import { CallTurns } from '../call-budget.js';
import { ClusterCache } from '../cluster-cache.js';
import { Cluster } from '../placement/cluster.js';
import { needsGpu } from '../placement/demand.js';
import type { Pace, Turns } from '../placement/pace.js';
import { policyOf } from '../placement/policy/policies.js';
import type { Policy, PolicyName } from '../placement/policy/policy.js';
import { EvictionLimits, NO_LIMITS } from '../eviction-limits.js';
import { explainPod, type NodeExplanation } from './node-explanation.js';
import { groupMinimumOf, groupOf } from '../pod-groups.js';
import { viewPod, type PodView } from '../pod-view.js';
import { preempt } from '../preemption.js';
import type { ClusterState, KnownPod } from './cluster-state.js';

/** A pod whose end would make room. */
export interface BlockingPod {
  readonly namespace: string;
  readonly name: string;
  readonly priority: number;
  /** Milliseconds since 1970: the end of its deletion or its active deadline; null if its end is not known. */
  readonly endsAtMs: number | null;
}

/** The node that lacks least: the pod fits there when these pods have ended. */
export interface NearestFit {
  readonly node: string;
  readonly pods: readonly BlockingPod[];
  /** When the last of them ends; null if that is not known. */
  readonly endsAtMs: number | null;
  /** Whether all have a lower priority, so that the scheduler may evict them. */
  readonly mayPreempt: boolean;
}

/** The pods that start together with a pod, or not at all. */
export interface GangFit {
  readonly name: string;
  /** How many must start together; null if no member says so. */
  readonly minimum: number | null;
  /** Members with a node. */
  readonly placed: number;
  readonly waiting: number;
  /** How many of the waiting ones fit at the same time. */
  readonly fitTogether: number;
}

/** Why a pod waits for a node. */
export interface WaitingAnswer {
  readonly pod: PodView;
  /** Resources of other projects by which it asks for GPUs; gpu-manager does not serve them. */
  readonly foreign: readonly string[];
  readonly nodes: readonly NodeExplanation[];
  /** Null for a pod that fits, and if no node has room even without other pods. */
  readonly nearest: NearestFit | null;
  /** Null for a pod without a group. */
  readonly gang: GangFit | null;
}

/** Whether the pod asks for resources of ours, rightly or wrongly. */
export function asksForGpus({ pod }: WaitingAnswer): boolean {
  return needsGpu(pod.demand) || pod.brokenRule !== null;
}

/** Explains why a pod waits, or where it fits, in a cluster with this state. */
export async function explainIn(state: ClusterState, wanted: Pod, policyName: PolicyName): Promise<WaitingAnswer> {
  const policy = policyOf(policyName);
  const cluster = new Cluster(policy);
  const cache = new ClusterCache(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  for (const [at, node] of state.nodes.entries()) {
    if (at % SEEN_A_TURN === 0) await nextTurn();
    cache.nodeSeen(node);
  }
  for (const [at, { view }] of state.pods.entries()) {
    if (at % SEEN_A_TURN === 0) await nextTurn();
    cache.podSeen(view);
  }
  const budget = new CallTurns(EXPLAIN_LIMITS).budget();
  return budget.run(whyWaiting({ cluster, cache, policy, nowMs: systemClock.now() }, wanted, state.pods, budget));
}

/** Objects that are applied before others of the process get a turn. */
const SEEN_A_TURN = 200;
/** Time limits of an explanation, for whose answer a person waits. */
const EXPLAIN_LIMITS = { cpuMs: 10_000, ms: 30_000 };

/** Explains why a pod waits in a cluster of these pods; the cluster is changed and of no use afterwards. */
function* whyWaiting(
  { cluster, cache, policy, nowMs }: State,
  wanted: Pod,
  pods: readonly KnownPod[],
  pace: Pace,
): Turns<WaitingAnswer> {
  const pod = asNew(wanted, cluster);
  const nodes = yield* explainPod(cluster, cache, policy, pod, wanted.tolerations, pace);
  const isFull = needsGpu(pod.demand) && nodes.length > 0 && !nodes.some(({ fits }) => fits);
  const nearest = isFull ? yield* nearestFit({ cluster, cache, nowMs }, pod, nodes, pods, pace) : null;
  const containers = [...wanted.initContainers, ...wanted.containers];
  const foreign = FOREIGN_RESOURCES.filter((name) => containers.some(({ extended }) => Number(extended(name)) > 0));
  return { pod, foreign, nodes, nearest, gang: yield* gangFit({ cluster, cache, policy, nowMs }, wanted, pods, pace) };
}

interface State {
  readonly cluster: Cluster;
  readonly cache: ClusterCache;
  readonly policy: Policy;
  readonly nowMs: number;
}

/** A pod of a running cluster is explained as if it were new: its own resources count as free. */
function asNew(wanted: Pod, cluster: Cluster): PodView {
  const pod = viewPod({ ...wanted, node: null });
  if (pod.uid !== '') cluster.removePod(pod.uid);
  return pod;
}

/** Of the nodes that lack only GPUs, the one on which fewest pods must end. */
function* nearestFit(
  { cluster, cache, nowMs }: Omit<State, 'policy'>,
  pod: PodView,
  nodes: readonly NodeExplanation[],
  pods: readonly KnownPod[],
  pace: Pace,
): Turns<NearestFit | null> {
  const full = nodes.filter(({ lacksGpus }) => lacksGpus);
  const proposals = new Map(full.map(({ node }) => [node, { uids: [], pdbViolations: 0 }]));
  const limits = new EvictionLimits(NO_LIMITS, () => 0);
  // As if every other pod had a lower priority: it is asked who has to end, not who may be evicted.
  const asHighest = { ...pod, priority: Infinity };
  const victims = yield* preempt({ cluster, pods: cache.pods, limits, nowMs }, asHighest, proposals, pace);
  const byUid = new Map(pods.map((one) => [one.view.uid, one]));
  const found = [...victims].flatMap(([node, { uids }]): NearestFit[] => {
    const blocking = uids.flatMap((uid) => byUid.get(uid) ?? []).map(blockingPod);
    if (blocking.length === 0) return [];
    const ends = blocking.map(({ endsAtMs }) => endsAtMs ?? Infinity);
    const last = Math.max(...ends);
    return [
      {
        node,
        pods: blocking,
        endsAtMs: last === Infinity ? null : last,
        mayPreempt: blocking.every(({ priority }) => priority < pod.priority),
      },
    ];
  });
  return found.sort(nearer)[0] ?? null;
}

function nearer(a: NearestFit, b: NearestFit): number {
  return (
    a.pods.length - b.pods.length ||
    Number(b.mayPreempt) - Number(a.mayPreempt) ||
    (a.endsAtMs ?? Number.MAX_VALUE) - (b.endsAtMs ?? Number.MAX_VALUE) ||
    (a.node < b.node ? -1 : 1)
  );
}

function blockingPod({ view: { namespace, name, priority }, endsAtMs }: KnownPod): BlockingPod {
  return { namespace, name, priority, endsAtMs };
}

/** Places the waiting members one after another, as the scheduler would. */
function* gangFit(
  { cluster, cache, policy }: State,
  wanted: Pod,
  pods: readonly KnownPod[],
  pace: Pace,
): Turns<GangFit | null> {
  const key = groupOf(wanted);
  if (key === null) return null;
  const others = pods.filter(({ view }) => !view.ended && view.uid !== wanted.uid && view.group === key);
  const self: Pick<KnownPod, 'view' | 'tolerations'> = {
    view: viewPod({ ...wanted, node: null }),
    tolerations: wanted.tolerations,
  };
  const waiting = [self, ...others.filter(({ view }) => view.nodeName === null)];
  let fitTogether = 0;
  for (const [at, { view, tolerations }] of waiting.entries()) {
    const [best] = yield* explainPod(cluster, cache, policy, view, tolerations, pace);
    if (best?.fits !== true) continue;
    const uid = view.uid || `member ${at}`;
    cluster.setPod({ uid, nodeName: best.node, demand: view.demand, initEnded: false, gpus: best.gpus });
    fitTogether += 1;
  }
  const minimums = [groupMinimumOf(wanted), ...others.map(({ view }) => view.groupMinimum)];
  return {
    name: key.split('/').at(-1) ?? key,
    minimum: minimums.find((minimum) => minimum !== null) ?? null,
    placed: others.filter(({ view }) => view.nodeName !== null).length,
    waiting: waiting.length,
    fitTogether,
  };
}
