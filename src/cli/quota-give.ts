import { Command, Option } from 'commander';
import { systemClock } from '../host/clock.js';
import { StartupError } from '../host/startup-error.js';
import { addGrant, addLoan, moveQuota, type Changed } from '../quota-controller/objects/group-change.js';
import type { KubeApi } from '../kube/client.js';
import type { ClusterAccess } from '../kube/open-client.js';
import { timestamp } from '../kube/json.js';
import { withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import {
  createEngine,
  type Decision,
  type GroupGrant,
  type QuotaEngine,
  toGroupGrant,
  type Hard,
  readDuration,
  readMoment,
} from '../quota/internal.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { wholeNumberBetween } from './flag-values.js';
import { outputOption, print, type Output } from './output.js';
import { existingStore } from './quota-store.js';

interface Place extends ClusterAccess {
  readonly output: Output;
  readonly store?: string;
}

interface GrantOptions extends Place {
  readonly name: string;
  readonly persons?: number;
  readonly from?: string;
  readonly every?: string;
  readonly expiresAfter?: string;
  readonly until?: string;
  readonly mode?: 'topup' | 'reset';
  readonly carryOver?: string;
}

interface LendOptions extends Place {
  readonly name: string;
  readonly from?: string;
  readonly until: string;
}

const STORE = ['--store <directory>', 'the journal of a store; default: the cluster of the kubeconfig'] as const;

/** `gpu-manager quota grant`: grants hours of usage to a group. */
export function quotaGrantCommand(): Command {
  return new Command('grant')
    .description('grant hours to a group, once or periodically; in a cluster, in the spec of its BizGroupResourceQuota')
    .argument('<group>')
    .argument('<key>', 'budget of the group: cash/gpus')
    .argument('<amount>', 'unit-hours')
    .requiredOption('--name <name>', 'name of the grant in its group')
    .addOption(
      new Option('--persons <count>', 'number of persons; each gets the amount').argParser(
        wholeNumberBetween(1, 1_000_000),
      ),
    )
    .option('--from <time>', 'first time, for example 2026-03-02T08:00:00Z; default: now')
    .option('--every <period>', 'period of a repeated grant: 7d, 168h, or month for calendar months')
    .option('--expires-after <duration>', 'unused hours expire this long after they were granted')
    .option('--until <time>', 'end of the grant: no further hours, and the remaining ones expire')
    .addOption(new Option('--mode <mode>', 'add to the remaining hours, or replace them').choices(['topup', 'reset']))
    .option('--carry-over <amount>', 'with a reset: how many of the remaining hours stay')
    .option(...STORE)
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (group: string, key: string, amount: string, options: GrantOptions) => {
      const { store, kubeconfig, context, output, ...fields } = options;
      const grant: GroupGrant = { key, amount, ...fields };
      await give(
        { store, kubeconfig, context },
        {
          inStore: (engine) => {
            const declared = engine.status(group)?.grants ?? [];
            if (declared.some(({ name }) => name === grant.name))
              throw new Error(`quota: group ${group} already has a grant ${grant.name}`);
            return engine.updateGroup({ name: group, grants: [...declared.map(toGroupGrant), grant] });
          },
          inCluster: (api) => addGrant(api, group, grant),
        },
      );
      await print(output, {
        document: () => ({ group, grant }),
        table: () => `${group}: grant ${grant.name} of ${key}=${amount}\n`,
      });
    });
}

/** `gpu-manager quota transfer`: moves quota between siblings permanently. */
export function quotaTransferCommand(): Command {
  return new Command('transfer')
    .description('move quota from a group to its sibling permanently')
    .argument('<from>', 'group that gives')
    .argument('<to>', 'its sibling')
    .argument('<amounts...>', 'limits.cpu=10 gpus=2')
    .option(...STORE)
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (from: string, to: string, written: readonly string[], place: Place) => {
      const amounts = amountsOf(written);
      await give(place, {
        inStore: (engine) => engine.transfer({ from, to, amounts }),
        inCluster: (api) => moveQuota(api, systemClock, from, to, amounts),
      });
      await print(place.output, {
        document: () => ({ from, to, amounts }),
        table: () => `${written.join(' ')} from ${from} to ${to}\n`,
      });
    });
}

/** `gpu-manager quota lend`: moves quota between siblings for a limited time. */
export function quotaLendCommand(): Command {
  return new Command('lend')
    .description('lend quota of a group to its sibling; it returns at the given time')
    .argument('<lender>')
    .argument('<borrower>', 'its sibling')
    .argument('<amounts...>', 'limits.cpu=10 gpus=2')
    .requiredOption('--name <name>', 'name of the loan')
    .requiredOption('--until <time>', 'time of return: a time, or a duration such as 7d from now on')
    .option('--from <time>', 'when it begins; default: now')
    .option(...STORE)
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (lender: string, borrower: string, written: readonly string[], options: LendOptions) => {
      const { name, from } = options;
      const amounts = amountsOf(written);
      const validFrom = from === undefined ? undefined : momentOf(from, '--from');
      const until = momentOf(options.until, '--until');
      await give(options, {
        inStore: (engine) => engine.loan({ id: name, lender, borrower, amounts, validFrom, until }),
        inCluster: (api) =>
          addLoan(api, lender, {
            name,
            to: borrower,
            amounts,
            ...(validFrom === undefined ? {} : { from: timestamp(validFrom) }),
            until: timestamp(until),
          }),
      });
      const end = new Date(until).toISOString();
      await print(options.output, {
        document: () => ({ name, lender, borrower, amounts, until: end }),
        table: () => `${written.join(' ')} of ${lender} for ${borrower} until ${end}\n`,
      });
    });
}

interface Given {
  readonly inStore: (engine: QuotaEngine) => Promise<Decision>;
  readonly inCluster: (api: KubeApi) => Promise<Changed>;
}

/** Changes a store, or the objects of a cluster. Rejects if the change is refused. */
async function give({ store, ...cluster }: Omit<Place, 'output'>, { inStore, inCluster }: Given): Promise<void> {
  if (store === undefined)
    return withClient(cluster, async (client) => {
      const changed = await inCluster(client);
      if (!changed.ok) throw new Error(`quota: ${changed.reason}`);
    });
  const journal = await existingStore(store);
  const engine = await createEngine({ store: journal, clock: () => Date.now() });
  try {
    const decision = await inStore(engine);
    if (!decision.allowed) throw new Error(`quota: ${decision.message}`);
  } finally {
    await engine.close();
  }
}

/** Reads texts such as `limits.cpu=10`. */
function amountsOf(written: readonly string[]): Hard {
  return Object.fromEntries(
    written.map((text) => {
      const [, key, amount] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
      if (key === undefined || amount === undefined)
        throw new StartupError(`quota: "${text}" is not key=amount, such as limits.cpu=10`);
      return [key, amount];
    }),
  );
}

/** Reads a time, or a duration from now; returns milliseconds since 1970. */
function momentOf(written: string, option: string): number {
  const moment = readMoment(written);
  if (!Number.isNaN(moment)) return moment;
  const duration = readDuration(written);
  if (Number.isNaN(duration))
    throw new StartupError(
      `quota: ${option}: "${written}" is neither a time such as 2026-03-02T08:00:00Z nor a duration such as 7d`,
    );
  return Date.now() + duration;
}
