import type { KubeApi } from './client.js';
import { podsPath } from './api-path.js';
import { readCondition } from './condition.js';
import { list, record, text, time } from './json.js';
import { listAll } from './list-all.js';
import { readPod } from './pod.js';

/** The agent of a node, as its pod describes it. */
export interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly isReady: boolean;
  /** Since when it is ready, or is not, milliseconds since 1970; null if its pod does not say. */
  readonly sinceMs: number | null;
  /** The reason in its pod why it is not ready; empty without one. */
  readonly problem: string;
  readonly scheme: 'http' | 'https';
  /** Port of its HTTP server. */
  readonly port: number;
  /** Whether its HTTP server asks for tokens. */
  readonly asksForToken: boolean;
}

/** Selector of the pods of the manifests and the chart. */
export const AGENT_PODS = 'app.kubernetes.io/name=gpu-manager';
/** Namespace in which the manifests and the chart's instructions install the agents. */
export const AGENT_NAMESPACE = 'kube-system';
const CONTAINER = 'gpu-manager';
const DEFAULT_PORT = 5678;

/**
 * The agents of a cluster by the name of their node. If a node has several, as during an update, the ready one counts.
 * Only pods of the agents' namespace are agents: a user who may create pods in another namespace can give them any
 * label. Rejects with a `KubeError`.
 */
export async function agentPods(api: KubeApi, namespace: string): Promise<ReadonlyMap<string, AgentPod>> {
  const path = podsPath(namespace);
  const pods = await listAll(api, 'the pods of the agents', path, { labelSelector: AGENT_PODS });
  const found = new Map<string, AgentPod>();
  for (const agent of pods.flatMap((pod) => readAgentPod(pod) ?? []))
    found.set(agent.node, betterAgent(found.get(agent.node), agent));
  return found;
}

/** Of two agents of one node, the one that counts: the ready one, else the first. */
export function betterAgent(first: AgentPod | undefined, second: AgentPod): AgentPod {
  return first === undefined || (second.isReady && !first.isReady) ? second : first;
}

/**
 * Reads a pod of the agent. Null for a pod without a node, and for one that no DaemonSet has made under the agents'
 * service account: users can give a pod any labels.
 */
export function readAgentPod(object: unknown): AgentPod | null {
  const { node, namespace, name, annotations, controller, isDone, phase, reason, message } = readPod(object);
  const { spec, status } = record(object);
  const container = list(record(spec).containers)
    .map(record)
    .find((each) => text(each.name) === CONTAINER);
  if (node === null || isDone || container === undefined) return null;
  if (controller?.kind !== 'DaemonSet' || !isNamedAfter(controller.name, text(record(spec).serviceAccountName)))
    return null;
  const ran = list(record(status).containerStatuses)
    .map(record)
    .find((each) => text(each.name) === CONTAINER);
  const state = record(ran?.state);
  const waiting = text(record(state.waiting).reason) || text(record(state.terminated).reason);
  const ready = readCondition(record(status).conditions, 'Ready');
  // The API server marks the pods of a lost node as not ready; their containers stay ready.
  const isReady = ran?.ready === true && ready?.status !== 'False';
  const args = [...list(container.command), ...list(container.args)].map(text);
  const given = annotations['prometheus.io/port'] ?? '';
  return {
    namespace,
    name,
    node,
    isReady,
    sinceMs: time(ready?.lastTransitionTime),
    problem: isReady ? '' : waiting || reason || message || (phase === 'Running' ? 'not ready' : phase),
    scheme: isSet(args, 'tls-self-signed') || valueOf(args, 'tls-cert-file') !== null ? 'https' : 'http',
    port: Number(valueOf(args, 'query-port') ?? (/^\d+$/u.test(given) ? given : DEFAULT_PORT)),
    asksForToken: isSet(args, 'token-review'),
  };
}

/** A DaemonSet of agents has the name of their service account, and that of a configuration where there are several. */
function isNamedAfter(daemonSet: string, account: string): boolean {
  return account !== '' && (daemonSet === account || daemonSet.startsWith(`${account}-`));
}

/** Value of a flag of the agent, as `--name=value` or `--name value`; the last one counts. */
function valueOf(args: readonly string[], flag: string): string | null {
  let value: string | null = null;
  args.forEach((argument, at) => {
    const [name = '', ...rest] = argument.split('=');
    if (name.replaceAll('_', '-') === `--${flag}`) value = rest.length > 0 ? rest.join('=') : (args[at + 1] ?? '');
  });
  return value;
}

function isSet(args: readonly string[], flag: string): boolean {
  const value = valueOf(args, flag);
  return value !== null && value !== 'false';
}
