import { Command } from 'commander';
import { StartupError } from '../host/startup-error.js';
import type { KubeApi } from '../kube/client.js';
import { listKept } from '../kube/list-all.js';
import { GROUPS_PATH } from '../kube/quota/names.js';
import { readGroup } from '../kube/quota/group-object.js';
import { consumerTreeText, readConsumerTree } from '../quota-controller/objects/consumer-tree.js';
import { withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import { plainStatus } from '../quota-command/report.js';
import { reportOf, statusesOf } from '../quota-command/replay.js';
import { subtreeOf } from '../quota-command/tree-order.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { formatOf, printLedger, printQuota, quotaOutputOption, type LedgerOptions } from './quota-output.js';
import { ignoreNamespaces, refuseOptions } from './refused-options.js';
import { watchOption } from './watch.js';

interface Options extends LedgerOptions {
  readonly consumers?: true;
}

/** `gpu-manager quota tree`: quota and usage of a cluster's groups. */
export function quotaTreeCommand(): Command {
  return refuseOptions(ignoreNamespaces(new Command('tree')), { selector: 'name a group to show its part of the tree' })
    .description('show quota, usage and remaining quota of the groups of a cluster')
    .argument('[group]', 'only this group and its descendants')
    .option(
      '--consumers',
      'show the Consumers of the arbitrator instead: limits, fair shares and usage, members below their areas',
    )
    .addOption(watchOption('the tree'))
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (group: string | undefined, { consumers, ...options }: Options) => {
      const { output } = options;
      if (consumers === true) {
        if (options.watch === true) throw new StartupError('quota: --consumers shows the Consumers once; leave out -w');
        if (group !== undefined) throw new StartupError('quota: --consumers shows all Consumers; leave out the group');
        await withClient(options, async (client) => {
          const rows = await readConsumerTree(client);
          await printQuota(
            output,
            formatOf(output) === 'table'
              ? consumerTreeText(rows)
              : rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
          );
        });
        return;
      }
      await printLedger(options, async (ledger, api) => {
        const all = statusesOf(ledger, null, Date.now());
        const shown = group === undefined ? all : subtreeOf(all, group);
        if (shown.length === 0) {
          const reason = await whyNoGroup(api, group);
          if (group !== undefined) throw new Error(`quota: ${reason}`);
          if (formatOf(output) === 'table') return `${reason}\n`;
        }
        return formatOf(output) === 'table'
          ? reportOf(shown)
          : shown.map((status) => `${JSON.stringify(plainStatus(status))}\n`).join('');
      });
    });
}

/** Why the ledger has no group, or not this one. The quota service writes the ledger from the group objects. */
async function whyNoGroup(api: KubeApi, group: string | undefined): Promise<string> {
  const names = await listKept(api, 'the groups', GROUPS_PATH, (object) => readGroup(object).spec.name);
  if (group !== undefined && !names.includes(group)) return `no group ${group}`;
  if (group !== undefined) return `group ${group} is not in the ledger yet: is quota serve running?`;
  if (names.length === 0) return 'no groups; create one: kubectl gpu quota create NAME gpus=8';
  return `${names.length === 1 ? '1 group' : `${names.length} groups`}, none in the ledger: is quota serve running?`;
}
