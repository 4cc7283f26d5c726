import { Command, Option } from 'commander';
import { buildQuotaServe, registerQuota, type QuotaServeConfig } from '../quota-controller/run.js';
import { DEFAULT_ARBITRATOR_POLICY } from '../quota/index.js';
import { createLog, type LogLevel } from '../host/log.js';
import { secondsBetween, wholeNumberBetween } from './flag-values.js';
import { logLevelOption, serveUntilSignal } from './serve.js';
import { addWebhookFlags, webhookConfigOf, type WebhookOptions } from './webhook-flags.js';

interface Options extends WebhookOptions {
  readonly unlabelled: 'Ignore' | 'Fail';
  readonly openGroups?: boolean;
  readonly identity?: string;
  readonly audit?: string;
  readonly kueue?: boolean;
  readonly refreshPeriod: number;
  readonly leaseDuration: number;
  readonly arbitrator: 'off' | 'plan' | 'on';
  readonly arbitratorPeriod: number;
  readonly arbitratorGrace: number;
  readonly arbitratorCooldown: number;
  readonly arbitratorWrites: number;
  readonly lendReserved?: boolean;
  readonly logLevel: LogLevel;
}

/** `gpu-manager quota serve`: the quota engine on Kubernetes. */
export function quotaServeCommand(): Command {
  const command = new Command('serve').description(
    'serve the admission webhooks; the elected replica also runs the controller',
  );
  return addWebhookFlags(command, 'gpu-manager-quota')
    .addOption(
      new Option(
        '--unlabelled <policy>',
        'failurePolicy of the webhooks for scale and autoscaler requests, which do not carry the group label',
      )
        .choices(['Ignore', 'Fail'])
        .default('Ignore'),
    )
    .option(
      '--open-groups',
      'let workloads of every namespace into groups where neither the group nor one above it has a namespaceSelector; default: if such a group exists at the first start in a cluster',
    )
    .option('--no-open-groups', 'refuse workloads of such groups')
    .option('--identity <name>', 'name of this replica in the Lease; default: host name and process id')
    .option(
      '--kueue',
      'decide for Kueue: an AdmissionCheck with the controllerName quota.gpu-manager.io/admission-check keeps a workload waiting until its group has room',
    )
    .addOption(
      new Option('--refresh-period <seconds>', 'interval of the full refresh')
        .default(300_000, '300')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--lease-duration <seconds>',
        'how long the Lease of a leader is valid without renewal; then another replica leads',
      )
        .default(15_000, '15')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--arbitrator <mode>',
        'divide the cluster among its namespaces while they run: off; plan: log what would be done and record it as events, and write nothing else; on: write Allocations, and evict pods of consumers that use more than their fair share while pods of others wait',
      )
        .choices(['off', 'plan', 'on'])
        .default('off'),
    )
    .addOption(
      new Option('--arbitrator-period <seconds>', 'interval between arbitration cycles')
        .default(1000, '1')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--arbitrator-grace <seconds>',
        'grace period: how long an overused namespace may delete pods itself before the arbitrator evicts them',
      )
        .default(30_000, '30')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--arbitrator-cooldown <seconds>',
        'how long after an eviction no other pod of the namespace is evicted for the same waiting consumer',
      )
        .default(60_000, '60')
        .argParser(milliseconds),
    )
    .addOption(
      new Option('--arbitrator-writes <count>', 'how many objects the arbitrator writes at once')
        .default(8)
        .argParser(wholeNumberBetween(1, 100)),
    )
    .option(
      '--audit <file>',
      'append the decisions of this replica to a hash-chained file, - for standard output; quota verify checks it',
    )
    .option('--lend-reserved', 'give reserved amounts that a namespace does not request to other namespaces')
    .addOption(logLevelOption())
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const config = configOf(options);
  if (config.registration === 'once') await registerQuota(config, createLog(options.logLevel));
  else await serveUntilSignal(options.logLevel, (log) => buildQuotaServe(config, log));
}

function configOf(options: Options): QuotaServeConfig {
  return {
    ...webhookConfigOf(options),
    unlabelled: options.unlabelled,
    openGroups: options.openGroups ?? null,
    identity: options.identity ?? null,
    audit: options.audit ?? null,
    kueue: options.kueue ?? false,
    refreshMs: options.refreshPeriod,
    leaseMs: options.leaseDuration,
    arbitrator: arbitratorOf(options),
  };
}

function arbitratorOf({
  arbitrator: mode,
  arbitratorPeriod: periodMs,
  arbitratorGrace: graceMs,
  arbitratorCooldown: cooldownMs,
  arbitratorWrites: writeConcurrency,
  lendReserved = false,
}: Options): QuotaServeConfig['arbitrator'] {
  return mode === 'off'
    ? null
    : { mode, periodMs, writeConcurrency, policy: { ...DEFAULT_ARBITRATOR_POLICY, graceMs, cooldownMs, lendReserved } };
}

/** Up to a day. */
function milliseconds(text: string): number {
  return 1_000 * secondsBetween(0.001, 86_400)(text);
}
