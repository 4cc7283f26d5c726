import { Command } from 'commander';
import type { ClusterAccess } from '../kube/open-client.js';
import { StartupError } from '../host/startup-error.js';
import { leaderOf } from '../quota-controller/clock/clock-reset.js';
import { withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import { quotaRemains, removeRemains } from '../quota-controller/objects/removal.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { outputOption, print, type Output } from './output.js';

interface Options extends ClusterAccess {
  readonly yes?: true;
  readonly namespace: string;
  readonly webhookName: string;
  readonly output: Output;
}

/** `gpu-manager quota remove`: removes from a cluster what an uninstalled quota service left behind. */
export function quotaRemoveCommand(): Command {
  return new Command('remove')
    .description(
      'remove what is left of the quota after its program: webhooks, groups with their finalizers, definitions',
    )
    .option('--yes', 'remove it; without this option it is only listed')
    .option('--namespace <name>', 'namespace of the Lease', 'kube-system')
    .option('--webhook-name <name>', 'name of the webhook configurations', 'gpu-manager-quota')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .addOption(outputOption())
    .action(({ yes, namespace, webhookName, output, ...access }: Options) =>
      withClient(access, async (client) => {
        const remains = await quotaRemains(client, webhookName);
        const now = client.serverTime.now();
        if (now === null) throw new StartupError('quota: the API server does not report its time');
        const leader = await leaderOf(client, namespace, now);
        if (leader !== null)
          throw new Error(
            `quota: ${leader.identity} leads: uninstall quota serve first, and wait until its Lease has ended`,
          );
        if (yes === true) await removeRemains(client, remains);
        const lines = [...remains.webhooks, ...remains.groups.map((name) => `group ${name}`), ...remains.definitions];
        const done = yes === true ? 'removed' : 'would be removed with --yes';
        await print(output, {
          document: () => ({ removed: yes === true, ...remains }),
          table: () =>
            lines.length === 0 ? 'nothing of the quota is left\n' : lines.map((line) => `${line} ${done}\n`).join(''),
        });
      }),
    );
}
