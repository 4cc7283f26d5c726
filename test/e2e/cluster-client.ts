import { mkdirSync } from 'node:fs';
import { systemClock } from '../../src/host/clock.js';
import { KubeClient } from '../../src/kube/client.js';
import { kubeconfigCredentials } from '../../src/kube/credentials.js';
import type { TestCluster } from './cluster.js';

/** A client of the API server of a cluster, as its administrator; the caller closes it. */
export async function clusterClient(cluster: TestCluster): Promise<KubeClient> {
  mkdirSync(cluster.directory, { recursive: true });
  return new KubeClient({
    credentials: await kubeconfigCredentials(cluster.kubeconfig, systemClock),
    clock: systemClock,
    userAgent: 'gpu-manager/e2e',
  });
}
