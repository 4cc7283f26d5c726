import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { RefusalListener } from './failed-pods.js';
import { NodeKube } from './node-kube.js';
import { openKubeClient } from '../../kube/open-client.js';

/** The flags of the agent that concern the API server. */
export interface ApiServerConfig {
  readonly kubeconfig: string | null;
  /** Whether to run without an API server: pods are known from the kubelet alone. */
  readonly standalone: boolean;
  readonly nodeName: string;
}

/** Connects this node to the API server; the agent starts even if it does not answer. Null with `--standalone`. */
export async function openApiServer(
  config: ApiServerConfig,
  clock: Clock,
  log: Log,
  onRefused: RefusalListener,
): Promise<NodeKube | null> {
  if (config.standalone) return null;
  const client = await openKubeClient(config.kubeconfig, clock);
  return new NodeKube({ client, nodeName: config.nodeName, clock, log, onRefused });
}
