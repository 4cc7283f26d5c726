import { Command, Option } from 'commander';
import { keptAlive } from '../host/keep-alive.js';
import { Lifecycle } from '../host/lifecycle.js';
import { buildQuotaServe, type QuotaServeConfig } from '../quota-controller/run.js';
import { DEFAULT_ARBITRATOR_POLICY } from '../quota/arbitrator/index.js';
import { StartupError } from '../host/startup-error.js';
import { createLog, type LogLevel } from '../host/log.js';
import { portNumber, secondsBetween, wholeNumberBetween } from './flag-values.js';
import { stopSignal } from './stop-signal.js';

interface Options {
  readonly address: string;
  readonly port: number;
  readonly probePort?: number;
  readonly kubeconfig?: string;
  readonly namespace: string;
  readonly service: string;
  readonly url?: string;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly caFile?: string;
  readonly clientCaFile?: string;
  readonly clientName?: readonly string[];
  readonly register: boolean;
  readonly unlabelled: 'Ignore' | 'Fail';
  readonly openGroups: boolean;
  readonly identity?: string;
  readonly audit?: string;
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
  return new Command('serve')
    .description('serve the admission webhooks; the elected replica also runs the controller')
    .option('--address <host>', 'address to listen on', '0.0.0.0')
    .addOption(new Option('--port <port>', 'port of the webhooks and metrics').default(8443).argParser(portNumber))
    .addOption(
      new Option(
        '--probe-port <port>',
        'own port of /healthz and /readyz, without TLS; default: --port answers them only',
      ).argParser(portNumber),
    )
    .option('--kubeconfig <file>', 'kubeconfig for the API server; default: the service account of the pod')
    .option('--namespace <name>', 'namespace of the Secret with the certificate and of the Lease', 'kube-system')
    .option(
      '--service <name>',
      'Service of that namespace, port 443, at which the API server reaches the webhooks',
      'gpu-manager-quota',
    )
    .option('--url <https://host:port>', 'URL at which the API server reaches the webhooks; default: the Service')
    .option(
      '--tls-cert-file <file>',
      'TLS certificate (PEM); default: the replicas create one and share it in a Secret',
    )
    .option('--tls-private-key-file <file>', 'private key of the TLS certificate (PEM)')
    .option('--ca-file <file>', 'CA (PEM) that signed the certificate; the API server verifies it')
    .option(
      '--client-ca-file <file>',
      'CA (PEM) that signs the client certificates of API servers; then only they may call. Default: a secret path in the webhook configuration, replaced every day',
    )
    .option(
      '--client-name <name...>',
      'common name of the client certificate of an API server; default: any that the CA signed',
    )
    .option('--no-register', 'do not write the ValidatingWebhookConfiguration')
    .addOption(
      new Option(
        '--unlabelled <policy>',
        'scaling and autoscalers while no replica answers: these requests do not show whether they concern a managed object',
      )
        .choices(['Ignore', 'Fail'])
        .default('Ignore'),
    )
    .option(
      '--no-open-groups',
      'refuse workloads of groups where neither the group nor one above it has a namespaceSelector',
    )
    .option('--identity <name>', 'name of this replica in the Lease; default: host name and process id')
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
        'divide the cluster among its namespaces while they run: off; plan: log what would be done, and write nothing; on: write Allocations, and evict pods of consumers that use more than they deserve while pods of others wait',
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
      'append what this replica decides to a hash-chained file, - for standard output; quota verify checks it',
    )
    .option('--lend-reserved', 'give reserved amounts that a namespace does not request to other namespaces')
    .addOption(
      new Option('--log-level <level>', 'log level')
        .choices(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const log = createLog(options.logLevel);
  const stopped = stopSignal();
  const lifecycle = new Lifecycle(await buildQuotaServe(configOf(options), log), log);
  await lifecycle.start();
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await lifecycle.stop();
  });
}

function configOf(options: Options): QuotaServeConfig {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, caFile: authorityFile, url } = options;
  const files = [certFile, keyFile, authorityFile].filter((file) => file !== undefined).length;
  if (files !== 0 && files !== 3)
    throw new StartupError('--tls-cert-file, --tls-private-key-file and --ca-file must be given together');
  if (options.probePort !== undefined && options.probePort !== 0 && options.probePort === options.port)
    throw new StartupError(`--probe-port: ${options.probePort} is already the --port; probes need a port of their own`);
  if (url !== undefined && !/^https:\/\/[^/]+\/?$/.test(url))
    throw new StartupError('--url must have the form https://host:port');
  return {
    address: options.address,
    port: options.port,
    probePort: options.probePort ?? null,
    clients: clientsOf(options),
    kubeconfig: options.kubeconfig ?? null,
    namespace: options.namespace,
    service: options.service,
    url: url ?? null,
    register: options.register,
    unlabelled: options.unlabelled,
    openGroups: options.openGroups,
    identity: options.identity ?? null,
    audit: options.audit ?? null,
    refreshMs: options.refreshPeriod,
    leaseMs: options.leaseDuration,
    arbitrator: arbitratorOf(options),
    tls:
      certFile === undefined || keyFile === undefined || authorityFile === undefined
        ? null
        : { certFile, keyFile, authorityFile },
  };
}

function clientsOf({ clientCaFile, clientName = [] }: Options): QuotaServeConfig['clients'] {
  if (clientCaFile === undefined && clientName.length > 0)
    throw new StartupError('--client-name needs --client-ca-file: a name is read from a certificate that a CA signed');
  return clientCaFile === undefined ? null : { authorityFile: clientCaFile, names: clientName };
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
