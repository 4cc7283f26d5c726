import { Command } from 'commander';
import { withClusterLedger } from '../quota-controller/open-cluster-ledger.js';
import { plainStatus } from '../quota/command/report.js';
import { reportOf, statusesOf } from '../quota/command/replay.js';
import { subtreeOf } from '../quota/command/tree-order.js';
import { QUOTA_KUBECONFIG, formatOf, printQuota, quotaOutputOption, type QuotaOutput } from './quota-output.js';

/** `gpu-manager quota tree`: what the groups of a cluster have and use. */
export function quotaTreeCommand(): Command {
  return new Command('tree')
    .description('show quota, usage and remaining quota of the groups of a cluster')
    .argument('[group]', 'only this group and its descendants')
    .addOption(quotaOutputOption())
    .option(...QUOTA_KUBECONFIG)
    .action((group: string | undefined, { output, kubeconfig }: QuotaOutput & { readonly kubeconfig?: string }) =>
      withClusterLedger(kubeconfig, async ({ ledger }) => {
        const all = statusesOf(ledger, null, Date.now());
        const shown = group === undefined ? all : subtreeOf(all, group);
        if (group !== undefined && shown.length === 0) throw new Error(`quota: no group ${group}`);
        await printQuota(
          output,
          formatOf(output) === 'table'
            ? reportOf(shown)
            : shown.map((status) => `${JSON.stringify(plainStatus(status))}\n`).join(''),
        );
      }),
    );
}
