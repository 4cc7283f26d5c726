import { Option, type Command } from 'commander';
import { StartupError } from '../host/startup-error.js';
import { ALL_ADDRESSES } from '../http/listen.js';
import type { Registration, WebhookConfig } from '../kube/admission/webhook-identity.js';
import { portNumber } from './flag-values.js';

/** Options of every program that serves admission webhooks. */
export interface WebhookOptions {
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
  readonly register: Exclude<Registration, 'none'> | false;
  readonly tokenReview?: boolean;
}

/** Adds the flags by which a program serves webhooks; `service` is the default name of its Service. */
export function addWebhookFlags(command: Command, service: string): Command {
  return command
    .option('--address <host>', 'address to listen on; :: are all, of IPv4 too', ALL_ADDRESSES)
    .addOption(new Option('--port <port>', 'port of the webhooks and metrics').default(8443).argParser(portNumber))
    .addOption(
      new Option(
        '--probe-port <port>',
        'separate port for /healthz and /readyz, without TLS; default: only --port answers them',
      ).argParser(portNumber),
    )
    .option('--kubeconfig <file>', 'kubeconfig for the API server; default: the service account of the pod')
    .option(
      '--namespace <name>',
      'namespace of the Secrets with certificate and path, and of the Lease of a program that elects a leader',
      'kube-system',
    )
    .option(
      '--service <name>',
      'Service of that namespace, port 443, at which the API server reaches the webhooks',
      service,
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
    .addOption(
      new Option(
        '--register <by>',
        'who writes the webhook configurations: replicas; job, which runs the same command again and again with --register=once, under an account of its own; once: write them and end',
      )
        .choices(['replicas', 'job', 'once'])
        .default('replicas'),
    )
    .option('--no-register', 'do not write the webhook configurations: you write them')
    .option('--token-review', 'require of readers of /metrics a bearer token of the cluster that may get this path');
}

/** Checks the options against each other; throws a `StartupError` that names the flag. */
export function webhookConfigOf(options: WebhookOptions): WebhookConfig {
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
    registration: options.register === false ? 'none' : options.register,
    tokenReview: options.tokenReview ?? false,
    tls:
      certFile === undefined || keyFile === undefined || authorityFile === undefined
        ? null
        : { certFile, keyFile, authorityFile },
  };
}

function clientsOf({ clientCaFile, clientName = [] }: WebhookOptions): WebhookConfig['clients'] {
  if (clientCaFile === undefined && clientName.length > 0)
    throw new StartupError('--client-name needs --client-ca-file: a name is read from a certificate that a CA signed');
  return clientCaFile === undefined ? null : { authorityFile: clientCaFile, names: clientName };
}
