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

export interface ApiServerNeeds {
  readonly config: ApiServerConfig;
  /** Called when the API server shows which pod was refused. */
  readonly onRefused: RefusalListener;
  readonly clock: Clock;
  readonly log: Log;
}

/** Connects this node to the API server; the agent starts even if it does not answer. Null with `--standalone`. */
export async function openApiServer({ config, onRefused, clock, log }: ApiServerNeeds): Promise<NodeKube | null> {
  if (config.standalone) return null;
  const client = await openKubeClient(config.kubeconfig, clock);
  return new NodeKube({ client, nodeName: config.nodeName, clock, log, onRefused });
}
