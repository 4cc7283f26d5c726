import type { Json } from '../../manifests/manifest-reader.js';
import type { ContainerDefaults, EvaluationOptions } from '../../quota/internal.js';
import type { Node } from '../../kube/node.js';
import { selects } from '../../manifests/node-selector.js';
import { readPod } from '../../kube/pod.js';
import { toleratesAll } from '../../manifests/taint.js';
import type { LimitRange } from './pod-defaults.js';
import type { QuotaPolicy } from './policy-object.js';

/** Facts that the evaluation of a workload needs beside the workload itself. */
export interface EvaluationFacts {
  readonly policy: QuotaPolicy;
  /** All nodes; null while unknown. */
  nodes(): readonly Node[] | null;
  node(name: string): Node | null;
  limitRanges(): readonly LimitRange[];
  /** The group of objects without a group, by namespace; null while no group names namespaces. */
  readonly defaultGroup: ((namespace: string) => string) | null;
  /** `overhead.podFixed` of a RuntimeClass; undefined for none. */
  overheadOf(runtimeClass: string): unknown;
}

/** Prefix of taints that Kubernetes adds for node conditions and cordoning; DaemonSets tolerate them. */
const NODE_TAINTS = 'node.kubernetes.io/';

/**
 * Options for evaluating workloads under admission, for the webhooks and for commands that explain them. `given` takes
 * precedence over the policy.
 */
export function evaluationBy(facts: EvaluationFacts, given: EvaluationOptions): EvaluationOptions {
  const { families, placement, catalog, strictTypes, chargeSurge, kinds } = facts.policy;
  return {
    families,
    placement,
    catalog,
    strictTypes,
    chargeSurge,
    ...(facts.defaultGroup === null ? {} : { defaultGroup: facts.defaultGroup }),
    nodeLabels: (name) => facts.node(name)?.labels,
    matchingNodes: (template) => matchingNodes(facts.nodes(), template),
    defaultsOf: (namespace) => defaultsOf(facts.limitRanges(), namespace),
    overheadOf: (runtimeClass) => facts.overheadOf(runtimeClass),
    ...given,
    kinds: [...(given.kinds ?? []), ...kinds],
  };
}

/** How many nodes a DaemonSet with this template runs on; null while nodes are unknown. */
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
