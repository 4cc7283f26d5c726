import type { Json } from '../../quota/evaluators/manifest.js';
import type { ContainerDefaults } from '../../quota/evaluators/completed-pod.js';
import type { EvaluationOptions } from '../../quota/evaluators/evaluate.js';
import type { Node } from '../../kube/node.js';
import { selects } from '../../kube/node-selector.js';
import { readPod } from '../../kube/pod.js';
import { toleratesAll } from '../../kube/taint.js';
import type { LimitRange } from './pod-defaults.js';
import type { QuotaPolicy } from './policy-object.js';

/** What the evaluation of a workload depends on beside its object. */
export interface EvaluationFacts {
  readonly policy: QuotaPolicy;
  /** All nodes; null where they are not known. */
  nodes(): readonly Node[] | null;
  node(name: string): Node | null;
  limitRanges(): readonly LimitRange[];
  /** `overhead.podFixed` of a RuntimeClass; undefined for none. */
  overheadOf(runtimeClass: string): unknown;
}

/** Taints of nodes that are not well, or cordoned: pods of DaemonSets come there all the same. */
const NODE_TAINTS = 'node.kubernetes.io/';

/**
 * How workloads are read that ask to be admitted: the webhooks and the commands that explain them read them by this.
 * `given` holds whatever the policy says.
 */
export function evaluationBy(facts: EvaluationFacts, given: EvaluationOptions): EvaluationOptions {
  const { families, placement, catalog, strictTypes, chargeSurge, kinds } = facts.policy;
  return {
    families,
    placement,
    catalog,
    strictTypes,
    chargeSurge,
    nodeLabels: (name) => facts.node(name)?.labels,
    matchingNodes: (template) => matchingNodes(facts.nodes(), template),
    defaultsOf: (namespace) => defaultsOf(facts.limitRanges(), namespace),
    overheadOf: (runtimeClass) => facts.overheadOf(runtimeClass),
    ...given,
    kinds: [...(given.kinds ?? []), ...kinds],
  };
}

/** How many pods a DaemonSet of this template has; null while nodes are not known. */
function matchingNodes(nodes: readonly Node[] | null, template: Json): number | null {
  if (nodes === null) return null;
  const { nodeSelector, nodeTerms, tolerations } = readPod(template);
  return nodes.filter(
    ({ name, labels, taints }) =>
      selects({ labels: nodeSelector, terms: nodeTerms }, name, labels) &&
      toleratesAll(
        tolerations,
        taints.filter(({ key }) => !key.startsWith(NODE_TAINTS)),
      ),
  ).length;
}

function defaultsOf(limitRanges: readonly LimitRange[], namespace: string): ContainerDefaults | null {
  const own = limitRanges.filter((range) => range.namespace === namespace);
  if (own.length === 0) return null;
  return {
    limits: Object.assign({}, ...own.map(({ defaults }) => defaults.limits)) as ContainerDefaults['limits'],
    requests: Object.assign({}, ...own.map(({ defaults }) => defaults.requests)) as ContainerDefaults['requests'],
  };
}
