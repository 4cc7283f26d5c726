import { Command, Option } from 'commander';
import { buildConsole } from '../console/run.js';
import type { LogLevel } from '../host/log.js';
import { StartupError } from '../host/startup-error.js';
import { AGENT_NAMESPACE } from '../kube/agent-pods.js';
import { flagsKubeconfig, operatorsKubeconfig } from '../kube/operators-kubeconfig.js';
import { readClusterLedger } from '../quota-controller/ledger/cluster-ledger.js';
import { hostAndPort } from './flag-values.js';
import { addPrometheusOptions, prometheusOf, type PrometheusFlags } from './prometheus-options.js';
import { logLevelOption, serveUntilSignal } from './serve.js';

interface Options extends PrometheusFlags {
  readonly address: { readonly host: string; readonly port: number };
  readonly kubeconfig?: string;
  readonly tokenReview: boolean;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly clusterName: string;
  readonly agentNamespace: string;
  readonly logLevel: LogLevel;
}

/** `gpu-manager console`: the whole cluster in a browser. */
export function consoleCommand(): Command {
  const command = new Command('console')
    .description('serve a page of the whole cluster: nodes, GPUs, slices, pods, waiting pods and why')
    .addOption(
      new Option('--address <host:port>', 'address to listen on')
        .default(hostAndPort('127.0.0.1:5680'), '127.0.0.1:5680')
        .argParser(hostAndPort),
    )
    .option(
      '--kubeconfig <file>',
      'kubeconfig for the API server; default: KUBECONFIG, ~/.kube/config, or the service account of the pod',
    )
    .option(
      '--no-token-review',
      'ask for no token and show all that the console itself may list; only with a loopback address',
    )
    .option('--tls-cert-file <file>', 'serve HTTPS with this certificate (PEM)')
    .option('--tls-private-key-file <file>', 'private key of the TLS certificate (PEM)')
    .option('--cluster-name <name>', 'name of the cluster at the top of the page', 'Cluster')
    .option('--agent-namespace <name>', 'namespace of the agents', AGENT_NAMESPACE);
  return addPrometheusOptions(command, 'show history and GPU-hours from this Prometheus, which scrapes the agents')
    .addOption(logLevelOption())
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const { address, kubeconfig, tokenReview, clusterName, tlsCertFile: certFile, tlsPrivateKeyFile: keyFile } = options;
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new StartupError('--tls-cert-file and --tls-private-key-file must be given together');
  const prometheus = await prometheusOf(options);
  await serveUntilSignal(options.logLevel, async (log) => {
    const { parts } = await buildConsole(
      {
        address: address.host,
        port: address.port,
        kubeconfig: kubeconfig === undefined ? operatorsKubeconfig(process.env) : flagsKubeconfig(kubeconfig),
        tokenReview,
        tls: certFile === undefined || keyFile === undefined ? null : { certFile, keyFile },
        clusterName,
        agentNamespace: options.agentNamespace,
        prometheus,
      },
      log,
      readClusterLedger,
    );
    return parts;
  });
}
