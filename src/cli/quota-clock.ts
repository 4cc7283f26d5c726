import { Command } from 'commander';
import { systemClock } from '../host/clock.js';
import { StartupError } from '../host/startup-error.js';
import type { ClusterAccess } from '../kube/open-client.js';
import { leaderOf, ledgerTime, resetClock } from '../quota-controller/clock/clock-reset.js';
import { withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { outputOption, print, type Output } from './output.js';

interface Options extends ClusterAccess {
  readonly output: Output;
  readonly set?: true;
  readonly namespace: string;
}

/** Reservations expire this long after the new time. */
const RESERVATION_MS = 60_000;

/** `gpu-manager quota clock`: shows the quota's time and the API server's, and corrects a wrong one. */
export function quotaClockCommand(): Command {
  return new Command('clock')
    .description("show the time of the quota and of the API server; --set copies the API server's time to the quota")
    .option('--set', "set the quota's time to the API server's; no replica of quota serve may run")
    .option('--namespace <name>', 'namespace of the Lease', 'kube-system')
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(({ set, namespace, output, ...access }: Options) =>
      withClient(access, async (client) => {
        const ledger = await ledgerTime(client, systemClock).catch((error: unknown) => {
          throw new StartupError(`quota: ${(error as Error).message}`);
        });
        const now = client.serverTime.now();
        if (now === null) throw new StartupError('quota: the API server does not report its time');
        const leader = await leaderOf(client, namespace, now);
        if (set === true) {
          if (leader !== null)
            throw new Error(
              `quota: ${leader.identity} leads: scale quota serve to 0 first, and wait until its Lease has ended`,
            );
          const { ledgers, before } = await resetClock(client, systemClock, Math.floor(now), RESERVATION_MS);
          return print(output, {
            document: () => ({ ledgers, from: timeOf(before), to: timeOf(now) }),
            table: () => `${ledgers} ledgers: from ${timeOf(before)} to ${timeOf(now)}\n`,
          });
        }
        const rows = [
          ['API server', timeOf(now)],
          ['last change of the ledger', ledger === 0 ? 'none' : `${timeOf(ledger)}${ahead(ledger - now)}`],
          ['leader', leader?.identity ?? 'none'],
        ];
        return print(output, {
          document: () => ({
            serverTime: timeOf(now),
            lastChange: ledger === 0 ? null : timeOf(ledger),
            leader: leader?.identity ?? null,
          }),
          table: () => rows.map(([name = '', value = '']) => `${name.padEnd(27)}${value}\n`).join(''),
        });
      }),
    );
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

function ahead(byMs: number): string {
  return byMs < 1000 ? '' : `  ${Math.round(byMs / 1000)} s ahead`;
}
