import { Command } from 'commander';
import { plainRecommendation, recommend, recommendationTable } from '../quota-command/recommend.js';
import { statusesOf } from '../quota-command/replay.js';
import { subtreeOf } from '../quota-command/tree-order.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { formatOf, printLedger, quotaOutputOption, type LedgerOptions } from './quota-output.js';
import { ignoreNamespaces, refuseOptions } from './refused-options.js';
import { watchOption } from './watch.js';

interface Options extends LedgerOptions {
  readonly group?: string;
}

/** `gpu-manager quota recommend`: what to ask for so that it fits. */
export function quotaRecommendCommand(): Command {
  return refuseOptions(ignoreNamespaces(new Command('recommend')), { selector: 'name a group with --group' })
    .description(
      'show for each kind of request in a group what of it still fits: all of it, fewer pods, or a smaller pod',
    )
    .option('--group <name>', 'only this group and its descendants')
    .addOption(watchOption('the list'))
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(({ group, ...options }: Options) =>
      printLedger(options, (ledger) => {
        const all = statusesOf(ledger, null, Date.now());
        const statuses = group === undefined ? all : subtreeOf(all, group);
        if (group !== undefined && statuses.length === 0) throw new Error(`quota: no group ${group}`);
        const charges = statuses.flatMap(({ name }) => ledger.charges(name));
        const rows = recommend(statuses, charges);
        if (formatOf(options.output) === 'table') return recommendationTable(rows);
        return rows.map((row) => `${JSON.stringify(plainRecommendation(row))}\n`).join('');
      }),
    );
}
