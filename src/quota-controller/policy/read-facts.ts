import { ALL_NODES } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { list, record } from '../../kube/json.js';
import { readNode } from '../../kube/node.js';
import { GROUPS_PATH, POLICIES_PATH } from '../../kube/quota/names.js';
import { LIMIT_RANGES_PATH, NAMESPACES_PATH, RUNTIME_CLASSES_PATH } from './cluster-facts.js';
import { defaultGroupsOf } from './default-groups.js';
import type { EvaluationFacts } from './evaluation.js';
import { readLimitRange, readRuntimeClass } from './pod-defaults.js';
import { NO_POLICY, readPolicy } from './policy-object.js';

/**
 * Reads once what the evaluation of workloads needs. `missing` is called for collections that the caller may not list,
 * and for parts of the policy that cannot be read.
 */
export async function readFacts(api: KubeApi, missing: (reason: string) => void): Promise<EvaluationFacts> {
  const items = async (path: string): Promise<readonly unknown[] | null> => {
    const answer = await api.request({ method: 'GET', path });
    if (answer.ok) return list(record(answer.body).items);
    if (answer.code !== 'not-found') missing(`${path} cannot be listed: ${answer.message}`);
    return null;
  };
  const [policies, nodeObjects, ranges, classes, groups] = [
    await items(POLICIES_PATH),
    await items(ALL_NODES),
    await items(LIMIT_RANGES_PATH),
    await items(RUNTIME_CLASSES_PATH),
    await items(GROUPS_PATH),
  ];
  const isDefault = (groups ?? []).some((group) => record(record(group).spec).defaultFor !== undefined);
  const defaults = defaultGroupsOf(groups ?? [], isDefault ? ((await items(NAMESPACES_PATH)) ?? []) : []);
  const [policy] = (policies ?? []).flatMap((object) => readPolicy(object) ?? []);
  for (const problem of policy?.problems ?? [])
    missing(`a part of the quota policy cannot be read and is ignored: ${problem}`);
  const nodes = new Map(
    (nodeObjects ?? []).flatMap((object) => readNode(object) ?? []).map((node) => [node.name, node]),
  );
  const limitRanges = (ranges ?? []).flatMap((object) => readLimitRange(object) ?? []);
  const overheads = new Map(
    (classes ?? []).flatMap((object) => readRuntimeClass(object) ?? []).map(({ name, overhead }) => [name, overhead]),
  );
  return {
    policy: policy?.policy ?? NO_POLICY,
    nodes: () => (nodeObjects === null ? null : [...nodes.values()]),
    node: (name) => nodes.get(name) ?? null,
    defaultGroup: isDefault ? (namespace) => defaults.groupOf(namespace) : null,
    limitRanges: () => limitRanges,
    overheadOf: (runtimeClass) => overheads.get(runtimeClass),
  };
}
