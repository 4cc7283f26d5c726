import { keptAlive } from '../../host/keep-alive.js';
import { systemClock } from '../../host/clock.js';
import type { Policy, Quota } from '../../quota/index.js';
import type { KubeApi, KubeClient } from '../../kube/client.js';
import { readClusterLedger } from './cluster-ledger.js';
import { openUserClient, type ClusterAccess } from '../../kube/open-client.js';
import { StartupError } from '../../host/startup-error.js';

/** A cluster's quota for read-only commands. */
export interface ClusterLedger {
  readonly api: KubeApi;
  /** A copy; changes to it are not written back. */
  readonly ledger: Quota;
}

/** Reads a cluster's ledger. Rejects with a `StartupError` if the cluster cannot be reached or has no quota. */
export function openClusterLedger(api: KubeApi, policy: Partial<Policy> = {}): Promise<Quota> {
  return keptAlive(() => readClusterLedger(api, systemClock, policy)).catch((error: unknown) => {
    throw new StartupError(`quota: ${(error as Error).message}`);
  });
}

/** Opens a client with the operator's access and closes it after `use`. */
export async function withClient(access: ClusterAccess, use: (client: KubeClient) => Promise<void>): Promise<void> {
  const { client } = await openUserClient(access, systemClock);
  try {
    await use(client);
  } finally {
    client.close();
  }
}
