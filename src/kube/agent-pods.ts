import type { KubeApi } from './client.js';
import { ALL_PODS, podsPath } from './api-path.js';
import { list, record, text } from './json.js';
import { listAll } from './list-all.js';
import { readPod } from './pod.js';

/** The agent of a node, as its pod describes it. */
export interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly isReady: boolean;
  /** Why it is not ready, as far as its pod says; empty otherwise. */
  readonly problem: string;
  readonly scheme: 'http' | 'https';
  /** Port of its HTTP server. */
  readonly port: number;
  /** Whether its HTTP server asks for tokens. */
  readonly asksForToken: boolean;
}

/** Label of the pods of the manifests and the chart. */
const LABEL = 'app.kubernetes.io/name=gpu-manager';
const CONTAINER = 'gpu-manager';
const DEFAULT_PORT = 5678;

/**
 * The agents of a cluster by the name of their node, in one namespace or in all. If a node has several, as during an
 * update, the ready one counts. Rejects with a `KubeError`.
 */
export async function agentPods(api: KubeApi, namespace: string | null): Promise<ReadonlyMap<string, AgentPod>> {
  const path = namespace === null ? ALL_PODS : podsPath(namespace);
  const pods = await listAll(api, 'the pods of the agents', path, { labelSelector: LABEL });
  const found = new Map<string, AgentPod>();
  for (const agent of pods.flatMap((pod) => readAgentPod(pod) ?? []))
    if (agent.isReady || !found.has(agent.node)) found.set(agent.node, agent);
  return found;
}

/** Reads a pod of the agent; null for a pod of another program, or without a node. */
export function readAgentPod(object: unknown): AgentPod | null {
  const { node, namespace, name, annotations, isDone, phase, reason, message } = readPod(object);
  const { spec, status } = record(object);
  const container = list(record(spec).containers)
    .map(record)
    .find((each) => text(each.name) === CONTAINER);
  if (node === null || isDone || container === undefined) return null;
  const ran = list(record(status).containerStatuses)
    .map(record)
    .find((each) => text(each.name) === CONTAINER);
  const state = record(ran?.state);
  const waiting = text(record(state.waiting).reason) || text(record(state.terminated).reason);
  const isReady = ran?.ready === true;
  const args = [...list(container.command), ...list(container.args)].map(text);
  const given = annotations['prometheus.io/port'] ?? '';
  return {
    namespace,
    name,
    node,
    isReady,
    problem: isReady ? '' : waiting || reason || message || (phase === 'Running' ? 'not ready' : phase),
    scheme: isSet(args, 'tls-self-signed') || valueOf(args, 'tls-cert-file') !== null ? 'https' : 'http',
    port: Number(valueOf(args, 'query-port') ?? (/^\d+$/u.test(given) ? given : DEFAULT_PORT)),
    asksForToken: isSet(args, 'token-review'),
  };
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
