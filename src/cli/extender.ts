import { Command, InvalidArgumentError, Option } from 'commander';
import { buildExtender, explain, type ExtenderConfig } from '../scheduler/run.js';
import { keptAlive } from '../host/keep-alive.js';
import { Lifecycle } from '../host/lifecycle.js';
import { StartupError } from '../host/startup-error.js';
import { POLICY_NAMES, type PolicyName } from '../scheduler/cluster/policy/policy.js';
import { explanationText } from '../scheduler/explain.js';
import { createLog, type LogLevel } from '../host/log.js';
import { stopSignal } from './stop-signal.js';

interface Options {
  readonly address: { readonly host: string; readonly port: number };
  readonly policy: PolicyName;
  readonly kubeconfig?: string;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly clientCaFile?: string;
  readonly claimTtl: number;
  readonly settleTimeout: number;
  readonly logLevel: LogLevel;
  readonly explain?: string;
  readonly state?: string;
  readonly output: 'text' | 'json';
}

/** `gpu-manager extender`: the scheduler extender, or with `--explain` what it would answer and why. */
export function extenderCommand(): Command {
  return new Command('extender')
    .description('serve the scheduler extender: filter, prioritize, bind and preempt for kube-scheduler')
    .addOption(
      new Option('--address <host:port>', 'address to listen on')
        .default(addressOf('127.0.0.1:3456'), '127.0.0.1:3456')
        .argParser(addressOf),
    )
    .addOption(new Option('--policy <name>', 'how nodes are scored').choices(POLICY_NAMES).default('fragmentation'))
    .option('--kubeconfig <file>', 'kubeconfig for the API server; default: the service account of the pod')
    .option('--tls-cert-file <file>', 'serve HTTPS with this certificate (PEM)')
    .option('--tls-private-key-file <file>', 'private key of the TLS certificate (PEM)')
    .option('--client-ca-file <file>', 'CA (PEM) that must have signed the client certificate')
    .addOption(
      new Option('--claim-ttl <seconds>', 'how long GPUs stay reserved for a pod that the scheduler has not bound yet')
        .default(30_000, '30')
        .argParser(seconds),
    )
    .addOption(
      new Option(
        '--settle-timeout <seconds>',
        'how long a pod waits for decisions on other pods that hold the GPUs it needs',
      )
        .default(500, '0.5')
        .argParser(seconds),
    )
    .addOption(
      new Option('--log-level <level>', 'log level')
        .choices(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .option(
      '--explain <file>',
      'print for each node why the pod (or a pod of the Deployment, Job, ...) of this file fits or does not fit; do not serve. Exit code 1: it fits nowhere',
    )
    .option(
      '--state <file>',
      'with --explain: read nodes and pods from a file (kubectl get nodes,pods -A -o yaml) instead of the API server',
    )
    .addOption(new Option('-o, --output <format>', 'with --explain').choices(['text', 'json']).default('text'))
    .action((options: Options) =>
      options.explain === undefined ? serve(options) : printExplanation(options, options.explain),
    );
}

async function serve(options: Options): Promise<void> {
  const log = createLog(options.logLevel);
  const lifecycle = new Lifecycle(await buildExtender(configOf(options), log), log);
  const stopped = stopSignal();
  await lifecycle.start();
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await lifecycle.stop();
  });
}

async function printExplanation(options: Options, podFile: string): Promise<void> {
  const { pod, workload, nodes } = await explain({
    podFile,
    stateFile: options.state ?? null,
    kubeconfig: options.kubeconfig ?? null,
    policy: options.policy,
  });
  const text =
    options.output === 'json'
      ? JSON.stringify({ ...(workload === null ? {} : { workload }), namespace: pod.namespace, name: pod.name, nodes })
      : explanationText(pod, nodes, workload);
  process.stdout.write(`${text}\n`);
  if (!nodes.some(({ fits }) => fits)) process.exitCode = 1;
}

function configOf(options: Options): ExtenderConfig {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, clientCaFile } = options;
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new StartupError('--tls-cert-file and --tls-private-key-file belong together');
  if (clientCaFile !== undefined && certFile === undefined)
    throw new StartupError('--client-ca-file needs --tls-cert-file');
  return {
    address: options.address.host,
    port: options.address.port,
    policy: options.policy,
    reservationTtlMs: options.claimTtl,
    settleTimeoutMs: options.settleTimeout,
    kubeconfig: options.kubeconfig ?? null,
    tls:
      certFile === undefined || keyFile === undefined
        ? null
        : { certFile, keyFile, clientCaFile: clientCaFile ?? null },
  };
}

/** `127.0.0.1:3456`, `[::1]:3456`, `:3456` for every address. */
function addressOf(text: string): { host: string; port: number } {
  const parts = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/u.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port > 65_535) throw new InvalidArgumentError('not host:port');
  return { host: parts[1] ?? (parts[2] === '' ? '::' : (parts[2] ?? '::')), port };
}

/** As milliseconds. */
function seconds(text: string): number {
  const value = Number(text.replace(/s$/u, ''));
  if (!(value >= 0 && value <= 3600)) throw new InvalidArgumentError('not a number of seconds up to 3600');
  return value * 1000;
}
