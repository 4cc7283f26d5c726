import { Command } from 'commander';
import type { ClusterAccess } from '../kube/open-client.js';
import { StartupError } from '../host/startup-error.js';
import { consumerTreeText, readConsumerTree } from '../quota-controller/consumer-tree.js';
import { withClient, withClusterLedger } from '../quota-controller/open-cluster-ledger.js';
import { plainStatus } from '../quota/command/report.js';
import { reportOf, statusesOf } from '../quota/command/replay.js';
import { subtreeOf } from '../quota/command/tree-order.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { formatOf, printQuota, quotaOutputOption, type QuotaOutput } from './quota-output.js';

interface Options extends QuotaOutput, ClusterAccess {
  readonly consumers?: true;
}

/** `gpu-manager quota tree`: quota and usage of a cluster's groups. */
export function quotaTreeCommand(): Command {
  return new Command('tree')
    .description('show quota, usage and remaining quota of the groups of a cluster')
    .argument('[group]', 'only this group and its descendants')
    .option(
      '--consumers',
      'show the Consumers of the arbitrator instead: limits, fair shares and usage, members below their areas',
    )
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (group: string | undefined, { output, consumers, ...access }: Options) => {
      if (consumers === true) {
        if (group !== undefined) throw new StartupError('quota: --consumers shows all Consumers; leave out the group');
        await withClient(access, async (client) => {
          const rows = await readConsumerTree(client);
          process.stdout.write(
            output === 'table' ? consumerTreeText(rows) : rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
          );
        });
        return;
      }
      await withClusterLedger(access, async ({ ledger }) => {
        const all = statusesOf(ledger, null, Date.now());
        const shown = group === undefined ? all : subtreeOf(all, group);
        if (group !== undefined && shown.length === 0) throw new Error(`quota: no group ${group}`);
        await printQuota(
          output,
          formatOf(output) === 'table'
            ? reportOf(shown)
            : shown.map((status) => `${JSON.stringify(plainStatus(status))}\n`).join(''),
        );
      });
    });
}
