import { Command } from 'commander';
import { systemClock } from '../host/clock.js';
import { StartupError } from '../host/startup-error.js';
import type { ClusterAccess } from '../kube/open-client.js';
import { leaderOf } from '../quota-controller/clock/clock-reset.js';
import { mergeLedgers, storedLedgers } from '../quota-controller/ledger/merged-ledgers.js';
import { withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { outputOption, print, type Output } from './output.js';

interface Options extends ClusterAccess {
  readonly output: Output;
  readonly merge?: true;
  readonly namespace: string;
}

/** `gpu-manager quota ledgers`: shows the sizes of the ledgers, and merges them for earlier versions. */
export function quotaLedgersCommand(): Command {
  return new Command('ledgers')
    .description('show the sizes of the ledgers; with --merge, write each into one object, as earlier versions read it')
    .option('--merge', 'merge the segments of each ledger; no replica of quota serve may run')
    .option('--namespace <name>', 'namespace of the Lease', 'kube-system')
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(({ merge, namespace, output, ...access }: Options) =>
      withClient(access, async (client) => {
        const sizes = await storedLedgers(client, systemClock).catch((error: unknown) => {
          throw new StartupError(`quota: ${(error as Error).message}`);
        });
        if (merge === true) {
          const leader = await leaderOf(client, namespace, client.serverTime.now() ?? systemClock.now());
          if (leader !== null)
            throw new Error(
              `quota: ${leader.identity} leads: scale quota serve to 0 first, and wait until its Lease has ended`,
            );
          const merged = await mergeLedgers(client, systemClock);
          return print(output, { document: () => ({ merged }), table: () => `${merged} ledgers merged\n` });
        }
        const rows = [
          ['GROUP', 'OBJECT', 'ALL', 'SEGMENTS'],
          ...sizes.map(({ group, object, all, segments }) => [
            group || '(no group)',
            `${object}`,
            `${all}`,
            `${segments}`,
          ]),
        ];
        return print(output, {
          document: () => sizes,
          table: () =>
            rows
              .map(
                ([group = '', ...figures]) => `${group.padEnd(32)}${figures.map((one) => one.padStart(12)).join('')}\n`,
              )
              .join(''),
        });
      }),
    );
}
