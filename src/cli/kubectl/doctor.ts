import type { Command } from 'commander';
import type { Diagnosis } from '../../agent/doctor/diagnosis.js';
import { StartupError } from '../../host/startup-error.js';
import { diagnosisText, resultText, type CheckResult } from '../diagnosis-text.js';
import { outputOption, print, type Output } from '../output.js';
import { ignoreNamespaces, refuseOptions } from '../refused-options.js';
import { clusterCommand, withCluster, type ClusterOptions } from './cluster-command.js';
import { ENABLE_LABEL, isGpuResource, type GpuCluster, type GpuNode } from './gpu-cluster.js';

/** The doctor of the node starts programs and waits for the driver. */
const TIMEOUT_MS = 55_000;

/** `kubectl gpu doctor NODE`: the cluster's view of a node, then the checks of the doctor on the node. */
export function doctorCommand(): Command {
  return refuseOptions(ignoreNamespaces(clusterCommand('doctor')), {
    watch: 'it checks a node once; kubectl gpu nodes NODE -w follows it',
    selector: 'name one node; kubectl gpu nodes -l lists those with labels',
  })
    .description('check a node: label, agent, offered resources; then everything that gpu-manager doctor checks there')
    .argument('<node>', 'name, or node/name')
    .addOption(outputOption())
    .action((written: string, options: ClusterOptions & { readonly output: Output }) =>
      withCluster(options, async ({ cluster }) => {
        const name = written.replace(/^nodes?\//u, '');
        const node = await cluster.node(name);
        if (node === null) throw new StartupError(`no node ${name}: kubectl gpu nodes lists those with GPUs`);
        const found = [...clusterFindings(node), ...(await nodeFindings(cluster, node))];
        await print(options.output, {
          document: () => found,
          table: () => [`${resultText(found)}\n\n`, ...found.map(diagnosisText)].join(''),
        });
        if (found.some(({ state }) => state === 'failed')) process.exitCode = 1;
      }),
    );
}

function clusterFindings({ node, agent, snapshot, problem }: GpuNode): readonly CheckResult[] {
  const isEnabled = node.labels[ENABLE_LABEL] === 'enable';
  const offered = [...node.allocatable].filter(([resource, amount]) => isGpuResource(resource) && amount > 0);
  return [
    isEnabled
      ? ok('label', `${ENABLE_LABEL}=enable`)
      : {
          ...finding(agent === null ? 'failed' : 'warning', 'label', `the label ${ENABLE_LABEL}=enable is missing`),
          advice: `kubectl label node ${node.name} ${ENABLE_LABEL}=enable`,
        },
    ...(node.isCordoned
      ? [finding('warning', 'node', 'it is cordoned: no new pods are scheduled on it', `kubectl uncordon ${node.name}`)]
      : []),
    agent === null
      ? finding(
          'failed',
          'agent pod',
          'no agent runs on this node',
          'see the DaemonSet: kubectl get daemonsets -A; taints of the node may keep it away',
        )
      : agent.problem !== ''
        ? finding(
            'failed',
            'agent pod',
            `${agent.namespace}/${agent.name} is not ready: ${agent.problem}`,
            `kubectl --namespace ${agent.namespace} describe pod ${agent.name}; kubectl --namespace ${agent.namespace} logs ${agent.name}`,
          )
        : ok('agent pod', `${agent.namespace}/${agent.name} is ready`),
    offered.length > 0
      ? ok('resources', offered.map(([resource, amount]) => `${resource}: ${amount}`).join(', '))
      : finding(
          'failed',
          'resources',
          'the node offers no GPUs to pods',
          'the agent registers them with the kubelet: see the checks of driver and kubelet, and its log',
        ),
    ...(agent === null || agent.problem !== ''
      ? []
      : [
          snapshot === null
            ? finding('failed', 'access', problem, 'docs/reference/kubectl.md says which roles a user needs')
            : ok('access', `the agent ${snapshot.version} answers through the API server`),
        ]),
    ...(snapshot?.gpus ?? [])
      .filter(({ health }) => health.status !== 'healthy')
      .map(({ index, uuid, health }) =>
        finding(
          'failed',
          'health',
          `GPU ${index} (${uuid}) is ${health.status}: ${health.reason ?? ''}`,
          'see docs/reference/gpus.md',
        ),
      ),
  ];
}

async function nodeFindings(cluster: GpuCluster, { agent, snapshot }: GpuNode): Promise<readonly CheckResult[]> {
  if (agent === null) return [];
  const byHand = `kubectl --namespace ${agent.namespace} exec ${agent.name} -- gpu-manager doctor with the flags of the agent`;
  if (snapshot === null) return [finding('skipped', 'checks', 'the node cannot be asked', byHand)];
  const answer = await cluster.reader.read(agent, '/api/doctor', { timeoutMs: TIMEOUT_MS });
  if (answer.ok) return answer.body as readonly Diagnosis[];
  // Agents of simulated nodes, and of versions without it.
  if (answer.code === 'not-found') return [finding('skipped', 'checks', answer.message)];
  return [finding('failed', 'checks', answer.message, byHand)];
}

function finding(state: CheckResult['state'], check: string, what: string, advice: string | null = null): CheckResult {
  return { check, state, what, advice };
}

function ok(check: string, what: string): CheckResult {
  return finding('ok', check, what);
}
