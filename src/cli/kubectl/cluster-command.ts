import { Command, InvalidArgumentError, Option } from 'commander';
import { systemClock } from '../../host/clock.js';
import { keptAlive } from '../../host/keep-alive.js';
import { AGENT_NAMESPACE } from '../../kube/agent-pods.js';
import { openUserClient, type ClusterAccess } from '../../kube/open-client.js';
import { contextOption, kubeconfigOption } from '../cluster-options.js';
import { GpuCluster } from './gpu-cluster.js';
import { addListingOptions } from './listing.js';

export interface ClusterOptions extends ClusterAccess {
  readonly agentNamespace: string;
}

/** Options that choose objects of a namespace. */
export interface NamespaceOptions extends ClusterOptions {
  readonly namespace?: string;
  readonly allNamespaces?: true;
  readonly selector?: string;
}

/** An open cluster and the namespace that the user means; null for all. */
export interface OpenCluster {
  readonly cluster: GpuCluster;
  readonly namespace: string | null;
}

/** Adds the options of every command of `kubectl gpu`. */
export function clusterCommand(name: string): Command {
  return new Command(name)
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('--agent-namespace <name>', 'namespace of the agents', AGENT_NAMESPACE);
}

export function namespaceOption(description = 'namespace; default: that of the context'): Option {
  return new Option('-n, --namespace <name>', description).argParser((text: string) => {
    if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u.test(text))
      throw new InvalidArgumentError('Expected the name of a namespace, such as default.');
    return text;
  });
}

export function selectorOption(
  description = 'only objects with these labels, as in kubectl: app=web,tier!=db',
): Option {
  return new Option('-l, --selector <labels>', description);
}

/** A command that lists objects of a namespace, with the options of every listing; `help` describes two of them. */
export function listCommand(
  name: string,
  help: { readonly namespace?: string; readonly selector?: string; readonly hasNames?: boolean } = {},
): Command {
  const command = clusterCommand(name)
    .addOption(namespaceOption(help.namespace))
    .addOption(new Option('-A, --all-namespaces', 'all namespaces'))
    .addOption(selectorOption(help.selector));
  return addListingOptions(command, help.hasNames);
}

/** Opens the cluster for `work` and closes it afterwards. */
export async function withCluster(
  options: NamespaceOptions,
  work: (open: OpenCluster) => Promise<void>,
): Promise<void> {
  await keptAlive(async () => {
    const { client, namespace } = await openUserClient(options, systemClock);
    try {
      const chosen = options.allNamespaces === true ? null : (options.namespace ?? namespace ?? 'default');
      await work({ cluster: new GpuCluster(client, options.agentNamespace), namespace: chosen });
    } finally {
      client.close();
    }
  });
}
