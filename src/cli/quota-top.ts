import { Argument, Command } from 'commander';
import { statusesOf } from '../quota-command/replay.js';
import {
  plainTopGroup,
  plainTopShape,
  plainTopWorkload,
  topGroups,
  topGroupsTable,
  topShapes,
  topShapesTable,
  topWorkloads,
  topWorkloadsTable,
} from '../quota-command/top.js';
import { subtreeOf } from '../quota-command/tree-order.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { formatOf, printLedger, quotaOutputOption, type LedgerOptions } from './quota-output.js';
import { ignoreNamespaces, refuseOptions } from './refused-options.js';
import { watchOption } from './watch.js';

interface Options extends LedgerOptions {
  readonly by?: string;
  readonly group?: string;
}

/** `gpu-manager quota top`: the groups or workloads with the highest use. */
export function quotaTopCommand(): Command {
  return refuseOptions(ignoreNamespaces(new Command('top')), { selector: 'name a group with --group' })
    .description(
      'show the groups nearest to their limits, the workloads that take most of their group, or how often the requests of workloads still fit',
    )
    .addArgument(new Argument('[what]', 'of what').choices(['groups', 'workloads', 'shapes']).default('groups'))
    .option('--by <key>', 'limit to sort by, for example limits.cpu; default: the fullest limit of each group')
    .option('--group <name>', 'only this group and its descendants')
    .addOption(watchOption('the list'))
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action((what: 'groups' | 'workloads' | 'shapes', { by: key, group, ...options }: Options) =>
      printLedger(options, (ledger) => {
        const by = key ?? null;
        const isTable = formatOf(options.output) === 'table';
        const all = statusesOf(ledger, null, Date.now());
        const statuses = group === undefined ? all : subtreeOf(all, group);
        if (group !== undefined && statuses.length === 0) throw new Error(`quota: no group ${group}`);
        if (by !== null && !statuses.some(({ hard }) => hard.has(by))) throw new Error(`quota: no group limits ${by}`);
        const lines = (rows: readonly Readonly<Record<string, unknown>>[]): string =>
          rows.map((row) => `${JSON.stringify(row)}\n`).join('');
        if (what === 'groups') {
          const rows = topGroups(statuses, by);
          return isTable ? topGroupsTable(rows) : lines(rows.map(plainTopGroup));
        }
        const charges = statuses.flatMap(({ name }) => ledger.charges(name));
        if (what === 'shapes') {
          const rows = topShapes(statuses, charges, by);
          return isTable ? topShapesTable(rows) : lines(rows.map(plainTopShape));
        }
        const rows = topWorkloads(statuses, charges, by);
        return isTable ? topWorkloadsTable(rows) : lines(rows.map(plainTopWorkload));
      }),
    );
}
