import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestCluster } from './cluster.js';

/** Runs helm for releases in kube-system of the cluster. */
export async function helm(cluster: TestCluster, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    'helm',
    [...args, '--kubeconfig', cluster.kubeconfig, '--namespace', 'kube-system'],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  return stdout;
}

/** Values of every release: simulated GPUs, and the API server where pods of this cluster reach it. */
export const simulatedValues = (cluster: TestCluster, ...more: readonly string[]): readonly string[] => [
  ...['agent.driver=sim', 'agent.tokenReview=false', ...more].flatMap((value) => ['--set', value]),
  ...Object.entries({
    KUBERNETES_SERVICE_HOST: cluster.apiServer.host,
    KUBERNETES_SERVICE_PORT: cluster.apiServer.port,
  }).flatMap(([name, value], index) => {
    const variable = `agent.extraEnv[${index}]`;
    return ['--set', `${variable}.name=${name}`, '--set-string', `${variable}.value=${value}`];
  }),
];

/** Pods of this cluster have no network of their own. */
export const onHostNetwork = (cluster: TestCluster, daemonSet: string): Promise<string> =>
  cluster.kubectl(
    ...['--namespace', 'kube-system', 'patch', 'daemonset', daemonSet],
    ...['--patch', '{"spec":{"template":{"spec":{"hostNetwork":true}}}}'],
  );
