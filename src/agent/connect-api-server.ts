import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { RefusalListener } from './api-server/failed-pods.js';
import { NodeKube } from './api-server/node-kube.js';
import type { AgentConfig } from './config.js';
import { openKubeClient } from '../kube/open-client.js';

/** Connects this node to the API server; the agent starts even if it does not answer. Null with `--standalone`. */
export async function openApiServer(
  config: AgentConfig,
  clock: Clock,
  log: Log,
  onRefused: RefusalListener,
): Promise<NodeKube | null> {
  if (config.standalone) return null;
  const client = await openKubeClient(config.kubeconfig, clock);
  return new NodeKube({ client, nodeName: config.nodeName, clock, log, onRefused });
}
