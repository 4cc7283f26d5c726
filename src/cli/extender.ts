import { Command, InvalidArgumentError, Option } from 'commander';
import type { LeaseName } from '../scheduler/election.js';
import { explainFile } from '../cluster/explain/explain-file.js';
import { buildExtender, type ExtenderConfig } from '../scheduler/run.js';
import { OFFERS, type Offer } from '../scheduler/extender-service.js';
import { StartupError } from '../host/startup-error.js';
import { POLICY_NAMES, type PolicyName } from '../cluster/placement/policy/policy.js';
import { waitingDocument, waitingText } from '../cluster/explain/waiting-text.js';
import type { LogLevel } from '../host/log.js';
import { hostAndPort, secondsBetween } from './flag-values.js';
import { outputOption, print, type Output } from './output.js';
import { logLevelOption, serveUntilSignal } from './serve.js';

interface Options {
  readonly address: { readonly host: string; readonly port: number };
  readonly policy: PolicyName;
  readonly kubeconfig?: string;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly clientCaFile?: string;
  readonly claimTtl: number;
  readonly settleTimeout: number;
  readonly offer: Offer;
  readonly logLevel: LogLevel;
  readonly explain?: string;
  readonly lease?: LeaseName;
  readonly state?: string;
  readonly output: Output;
}

/** `gpu-manager extender`: the scheduler extender; with `--explain` it prints its decision and the reasons. */
export function extenderCommand(): Command {
  return new Command('extender')
    .description('serve the scheduler extender: filter, prioritize, bind and preempt for kube-scheduler')
    .addOption(
      new Option('--address <host:port>', 'address to listen on')
        .default(hostAndPort('127.0.0.1:3456'), '127.0.0.1:3456')
        .argParser(hostAndPort),
    )
    .addOption(new Option('--policy <name>', 'how nodes are scored').choices(POLICY_NAMES).default('fragmentation'))
    .option('--kubeconfig <file>', 'kubeconfig for the API server; default: the service account of the pod')
    .option('--tls-cert-file <file>', 'serve HTTPS with this certificate (PEM)')
    .option('--tls-private-key-file <file>', 'private key of the TLS certificate (PEM)')
    .option('--client-ca-file <file>', 'CA (PEM) that must have signed the client certificate')
    .addOption(
      new Option('--claim-ttl <seconds>', 'how long GPUs stay reserved for a pod that the scheduler has not bound yet')
        .default(30_000, '30')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--settle-timeout <seconds>',
        'how long a pod waits for decisions on other pods that hold the GPUs it needs',
      )
        .default(500, '0.5')
        .argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--offer <nodes>',
        'which of the nodes that a pod fits on are offered: all, or only the best, which costs the scheduler less; needs the weight of the shipped configuration, and no extender may follow',
      )
        .choices(OFFERS)
        .default('all'),
    )
    .addOption(
      new Option(
        '--lease <namespace/name>',
        'with several replicas: the Lease that decides which of them answers; without it, run one replica',
      ).argParser(leaseName),
    )
    .addOption(logLevelOption())
    .option(
      '--explain <file>',
      'print for each node why the pod (or a pod of the Deployment, Job, ...) of this file fits or does not fit; do not serve. Exit code 1: it fits nowhere',
    )
    .option(
      '--state <file>',
      'with --explain: read nodes and pods from a file (kubectl get nodes,pods -A -o yaml) instead of the API server',
    )
    .addOption(outputOption())
    .action((options: Options) =>
      options.explain === undefined ? serve(options) : printExplanation(options, options.explain),
    );
}

async function serve(options: Options): Promise<void> {
  await serveUntilSignal(options.logLevel, (log) => buildExtender(configOf(options), log));
}

async function printExplanation(options: Options, podFile: string): Promise<void> {
  const { answer, workload } = await explainFile({
    podFile,
    stateFile: options.state ?? null,
    kubeconfig: options.kubeconfig ?? null,
    policy: options.policy,
  });
  await print(options.output, {
    document: () => ({ ...(workload === null ? {} : { workload }), ...waitingDocument(answer) }),
    table: () => `${waitingText(answer, workload, Date.now())}\n`,
  });
  if (!answer.nodes.some(({ fits }) => fits)) process.exitCode = 1;
}

function configOf(options: Options): ExtenderConfig {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, clientCaFile } = options;
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new StartupError('--tls-cert-file and --tls-private-key-file must be given together');
  if (clientCaFile !== undefined && certFile === undefined)
    throw new StartupError('--client-ca-file needs --tls-cert-file');
  return {
    address: options.address.host,
    port: options.address.port,
    policy: options.policy,
    reservationTtlMs: options.claimTtl,
    settleTimeoutMs: options.settleTimeout,
    offer: options.offer,
    lease: options.lease ?? null,
    kubeconfig: options.kubeconfig ?? null,
    tls:
      certFile === undefined || keyFile === undefined
        ? null
        : { certFile, keyFile, clientCaFile: clientCaFile ?? null },
  };
}

function leaseName(text: string): LeaseName {
  const [namespace = '', name = '', more] = text.split('/');
  if (namespace === '' || name === '' || more !== undefined)
    throw new InvalidArgumentError(`expected NAMESPACE/NAME, found ${JSON.stringify(text)}`);
  return { namespace, name };
}

function milliseconds(text: string): number {
  return 1_000 * secondsBetween(0, 3_600)(text);
}
