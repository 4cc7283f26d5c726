import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestCluster } from './cluster.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

const MANIFESTS = fileURLToPath(new URL('../../../etc/extender/', import.meta.url));

/**
 * Starts the extender as the process `extender`, and restarts the scheduler of the cluster with the shipped
 * configuration.
 */
export async function startExtender(cluster: TestCluster): Promise<void> {
  cluster.processes.start('extender', process.execPath, [MAIN, 'extender', `--kubeconfig=${cluster.kubeconfig}`]);
  await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok, 30_000);
  const config = join(cluster.directory, 'scheduler.yaml');
  writeFileSync(
    config,
    readFileSync(
      join(MANIFESTS, cluster.version.atLeast(25) ? 'scheduler-config.yaml' : 'scheduler-config-v1beta1.yaml'),
      'utf8',
    )
      .replace('/etc/kubernetes/scheduler.conf', cluster.kubeconfig)
      .concat('leaderElection:\n  leaderElect: false\n'),
  );
  await cluster.processes.stop('scheduler');
  cluster.startScheduler([`--config=${config}`]);
}
