import { Argument, Command } from 'commander';
import type { ClusterAccess } from '../kube/open-client.js';
import { withClusterLedger } from '../quota-controller/open-cluster-ledger.js';
import { statusesOf } from '../quota/command/replay.js';
import {
  plainTopGroup,
  plainTopWorkload,
  topGroups,
  topGroupsTable,
  topWorkloads,
  topWorkloadsTable,
} from '../quota/command/top.js';
import { subtreeOf } from '../quota/command/tree-order.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { formatOf, printQuota, quotaOutputOption, type QuotaOutput } from './quota-output.js';

interface Options extends QuotaOutput, ClusterAccess {
  readonly by?: string;
  readonly group?: string;
}

/** `gpu-manager quota top`: the groups or workloads with the highest use. */
export function quotaTopCommand(): Command {
  return new Command('top')
    .description('show the groups nearest to their limits, or the workloads that take most of their group')
    .addArgument(new Argument('[what]', 'of what').choices(['groups', 'workloads']).default('groups'))
    .option('--by <key>', 'limit to sort by, for example limits.cpu; default: the fullest limit of each group')
    .option('--group <name>', 'only this group and its descendants')
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action((what: 'groups' | 'workloads', { by: key, group, output, ...access }: Options) =>
      withClusterLedger(access, async ({ ledger }) => {
        const by = key ?? null;
        const isTable = formatOf(output) === 'table';
        const all = statusesOf(ledger, null, Date.now());
        const statuses = group === undefined ? all : subtreeOf(all, group);
        if (group !== undefined && statuses.length === 0) throw new Error(`quota: no group ${group}`);
        if (by !== null && !statuses.some(({ hard }) => hard.has(by))) throw new Error(`quota: no group limits ${by}`);
        const lines = (rows: readonly Readonly<Record<string, unknown>>[]): string =>
          rows.map((row) => `${JSON.stringify(row)}\n`).join('');
        if (what === 'groups') {
          const rows = topGroups(statuses, by);
          await printQuota(output, isTable ? topGroupsTable(rows) : lines(rows.map(plainTopGroup)));
        } else {
          const rows = topWorkloads(
            statuses,
            statuses.flatMap(({ name }) => ledger.charges(name)),
            by,
          );
          await printQuota(output, isTable ? topWorkloadsTable(rows) : lines(rows.map(plainTopWorkload)));
        }
      }),
    );
}
