import { SUSPENDABLE_KEY } from '../../gpu/annotations.js';
import type { Cluster } from '../placement/cluster.js';
import { takesTurns } from '../placement/cost-table.js';
import { needsGpu, type Demand } from '../placement/demand.js';
import { refusalText } from '../placement/fit-result.js';
import { slotsOf, type ClusterNode } from '../placement/node.js';
import { selects } from '../../manifests/node-selector.js';
import type { Pace, Turns } from '../placement/pace.js';
import { placePod, type ContainerGpus } from '../../gpu/pods/pod-placement.js';
import { policyOf } from '../placement/policy/policies.js';
import type { Policy } from '../placement/policy/policy.js';
import type { ClusterCache } from '../cluster-cache.js';
import type { PodView } from '../pod-view.js';
import { toleratesAll, type Taint, type Toleration } from '../../manifests/taint.js';
import { priorities } from '../placement/priorities.js';

/** The extender's decision about one node, and the reason. */
export interface NodeExplanation {
  readonly node: string;
  readonly fits: boolean;
  /** 0 to 10, the score for the scheduler; 0 for a node that does not fit. */
  readonly score: number;
  /** The GPUs that the pod would get there. */
  readonly gpus: readonly ContainerGpus[];
  /** Why the pod does not fit; for a node that fits, the cost of the pod by the policy. */
  readonly reason: string;
  /** Whether nothing but free GPUs is missing there. */
  readonly lacksGpus: boolean;
}

/**
 * Explains for every node why the pod fits or does not, the best node first. Besides the extender's own checks (GPUs,
 * the rules of a request), it names the scheduler's checks: selectors, taints, cordoned nodes, CPU and memory.
 */
export function* explainPod(
  cluster: Cluster,
  cache: ClusterCache,
  policy: Policy,
  pod: PodView,
  tolerations: readonly Toleration[],
  pace: Pace,
): Turns<NodeExplanation[]> {
  const nodes = [...cluster.nodes.values()];
  const obstacles = new Map<ClusterNode, string | null>();
  const lacking = new Set<ClusterNode>();
  for (const node of nodes) {
    const reason = obstacle(node, cache, pod, tolerations);
    const missing = reason === null ? yield* noGpus(node, pod.demand, pace) : null;
    if (missing !== null) lacking.add(node);
    obstacles.set(node, reason ?? missing);
  }
  const fitting = nodes.filter((node) => obstacles.get(node) === null);
  const costs = yield* cluster.costsInTurns(pod.demand, fitting, pace);
  const ownPolicy = pod.demand.selection.nodePolicy;
  const applied = ownPolicy === null ? policy : policyOf(ownPolicy);
  const scores = priorities(costs);
  const places = new Map(fitting.map((node, at) => [node, at]));
  return nodes
    .map((node): NodeExplanation => {
      const reason = obstacles.get(node) ?? null;
      const lacksGpus = lacking.has(node);
      if (reason !== null) return { node: node.name, fits: false, score: 0, gpus: [], reason, lacksGpus };
      const placed = placePod(node.shape, slotsOf(node.shape, node.freeFor(pod.demand)), pod.demand);
      const at = places.get(node) ?? -1;
      const cost = { primary: costs.primary[at] ?? 0, tieBreak: costs.tieBreak[at] ?? 0 };
      return {
        node: node.name,
        fits: true,
        score: scores[at] ?? 0,
        gpus: placed.ok ? placed.containers : [],
        reason: takesTurns(cost) ? 'the pod would take turns with other suspendable pods' : applied.inWords(cost),
        lacksGpus,
      };
    })
    .sort((a, b) => Number(b.fits) - Number(a.fits) || b.score - a.score || (a.node < b.node ? -1 : 1));
}

function obstacle(
  node: ClusterNode,
  cache: ClusterCache,
  pod: PodView,
  tolerations: readonly Toleration[],
): string | null {
  const { shape, free } = node;
  const { demand } = pod;
  if (pod.brokenRule !== null) return pod.brokenRule;
  if (!selects(demand.selector, shape.name, shape.labels))
    return "the pod's node selector or affinity does not allow this node";
  if (cache.cordoned.has(shape.name)) return 'the node is cordoned';
  const taint = cache.taintsOf(shape.name).find((one) => !toleratesAll(tolerations, [one]));
  if (taint !== undefined) return `the pod does not tolerate the taint ${taintText(taint)}`;
  if (demand.cpuMilli > free.cpuMilli) return `CPU: ${demand.cpuMilli}m asked for, ${Math.max(0, free.cpuMilli)}m free`;
  if (demand.hostMemoryBytes > free.hostMemoryBytes)
    return `memory: ${mib(demand.hostMemoryBytes)} asked for, ${mib(free.hostMemoryBytes)} free`;
  return needsGpu(demand) && shape.gpus.length === 0 ? 'the node has no GPU to share' : null;
}

/** Why the GPUs of a node cannot serve the pod; null if they can. Searches until the pace ends it. */
function* noGpus(node: ClusterNode, demand: Demand, pace: Pace): Turns<string | null> {
  const { shape } = node;
  if (!needsGpu(demand)) return null;
  for (;;) {
    if (pace.isTurnOver()) yield;
    if (pace.isSpent()) return refusalText('not-searched', demand);
    const placed = placePod(shape, slotsOf(shape, node.freeFor(demand)), demand);
    if (placed.ok) return null;
    if (!placed.isUnfinished)
      return placed.isProven ? `${placed.reason}${offerInWords(node, demand)}` : refusalText('not-searched', demand);
  }
}

/** That the pod would have room if it could be suspended; else empty. */
function offerInWords(node: ClusterNode, demand: Demand): string {
  const selection = { ...demand.selection, suspendable: true as const };
  const free = node.freeFor({ selection });
  if (demand.selection.suspendable === true || free === node.free) return '';
  const placed = placePod(node.shape, slotsOf(node.shape, free), { ...demand, selection, gpuKey: undefined });
  return placed.ok ? `; there is room for pods that may be suspended (annotation ${SUSPENDABLE_KEY}: "true")` : '';
}

/** The taint in the notation of `kubectl taint`. */
function taintText({ key, value, effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`;
}

function mib(bytes: number): string {
  return `${Math.max(0, Math.floor(bytes / 2 ** 20))} MiB`;
}
