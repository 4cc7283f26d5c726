import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileReason } from '../../host/file-reason.js';
import { certificateAuthority } from '../../host/certificate.js';
import type { Clock } from '../../host/clock.js';
import { StartupError } from '../../host/startup-error.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { KubeApi } from '../client.js';
import { sharedCertificate, type IssuedCertificate } from './certificate-secret.js';
import { ANY_CALLER, certifiedCallers, type ReviewCallers } from './review-callers.js';
import { SecretPaths } from './secret-paths.js';
import type { WebhookTarget } from './webhook-registration.js';

/**
 * The writer of the webhook configurations: each replica; a Job with an account of its own (`job`), which runs this
 * program once (`once`) again and again; or an administrator (`none`).
 */
export type Registration = 'replicas' | 'job' | 'once' | 'none';

/** How a program serves its webhooks, and how API servers reach and authenticate them. */
export interface WebhookConfig {
  readonly address: string;
  readonly port: number;
  /** Separate port for probes without TLS; null: probes only on `port`. */
  readonly probePort: number | null;
  /** Null: the service account of the pod. */
  readonly kubeconfig: string | null;
  /** Namespace of the Secrets with certificate and path. */
  readonly namespace: string;
  /** Service in that namespace through which the API server reaches the webhooks; ignored if `url` is set. */
  readonly service: string;
  /** `https://host:port` through which the API server reaches the webhooks; null to use the service. */
  readonly url: string | null;
  /** Certificate files; null for a certificate that the replicas create and share in a Secret. */
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly authorityFile: string } | null;
  /** Authority and common names of the API servers' client certificates; null: API servers use a secret path. */
  readonly clients: { readonly authorityFile: string; readonly names: readonly string[] } | null;
  readonly registration: Registration;
  /** Whether readers of the metrics need a token that may get their path. */
  readonly tokenReview: boolean;
}

/** Names that distinguish the webhooks of one program. */
export interface WebhookNames {
  /** Secret with the certificate. */
  readonly certificate: string;
  /** Secret with the path. */
  readonly paths: string;
  /** Prefix of the common names of its certificate authorities. */
  readonly authority: string;
}

export interface WebhookIdentity {
  /** Returns the certificate that should be served now. */
  readonly currentCertificate: () => Promise<IssuedCertificate>;
  readonly callers: ReviewCallers;
  /** Null if this program does not write the webhook configuration. */
  readonly target: (() => WebhookTarget) | null;
  /** How long the old certificate is served after a new one was made; absent: the default of `CertificateKeeper`. */
  readonly overlapMs?: number;
}

const SERVICE_PORT = 443;
const CERTIFICATE_DAYS = 365;
const DAY_MS = 86_400_000;
/** The Job renews a certificate; replicas do so only if it has not, for three weeks. */
const RENEW_WITHOUT_JOB_MS = 7 * DAY_MS;
/** Three runs of the Job, which registers the authority in the run that renews the certificate. */
const OVERLAP_WITH_JOB_MS = 15 * 60_000;

/** The certificate, the accepted callers and the address of a program's webhooks. */
export function webhookIdentity(
  config: WebhookConfig,
  names: WebhookNames,
  api: KubeApi,
  clock: Clock,
  log: StructuredLog,
): WebhookIdentity {
  const { tls, clients, namespace, url, registration, service } = config;
  const hosts = url === null ? [`${service}.${namespace}.svc`] : [new URL(url).hostname.replace(/^\[|\]$/g, '')];
  return {
    currentCertificate: async () => ({
      ...(tls === null
        ? await sharedCertificate({
            api,
            namespace,
            name: names.certificate,
            hosts,
            issue: (wanted) => issue(wanted, CERTIFICATE_DAYS, names.authority),
            now: () => clock.now(),
            renewMs: registration === 'job' ? RENEW_WITHOUT_JOB_MS : undefined,
          })
        : await readCertificate(tls)),
      clientAuthority: clients === null ? null : await readText(clients.authorityFile),
    }),
    callers: callersOf(config, names.paths, api, clock, log),
    target: registration === 'replicas' || registration === 'once' ? () => targetOf(config) : null,
    ...(registration === 'job' ? { overlapMs: OVERLAP_WITH_JOB_MS } : {}),
  };
}

function targetOf({ url, namespace, service }: WebhookConfig): WebhookTarget {
  return url === null ? { service: { namespace, name: service, port: SERVICE_PORT } } : { url: url.replace(/\/$/, '') };
}

/** What a webhook configuration says of the program. */
export interface Announced {
  readonly target: WebhookTarget;
  /** Path prefix of every webhook; empty for none. */
  readonly prefix: string;
  /** PEM. */
  readonly authority: string;
}

/**
 * The run of a Job: renews the certificate if that is due, writes the webhook configurations by `write`, and replaces
 * the secret path if that is due, which the next run announces. Rejects if one of them fails.
 */
export async function registerOnce(
  config: WebhookConfig,
  names: WebhookNames,
  api: KubeApi,
  clock: Clock,
  log: StructuredLog,
  write: (announced: () => Promise<Announced>) => Promise<void>,
): Promise<void> {
  const { currentCertificate, callers } = webhookIdentity(config, names, api, clock, log);
  await currentCertificate();
  await callers.start();
  try {
    await write(async () => ({
      target: targetOf(config),
      prefix: callers.prefix,
      authority: (await currentCertificate()).authority,
    }));
  } finally {
    await callers.stop();
  }
  if (config.clients === null)
    await new SecretPaths({ api, namespace: config.namespace, name: names.paths, clock, log }).replaceOld();
}

/** Restricts reviews to the API server, recognised by client certificate or secret path. */
function callersOf(
  { clients, registration, namespace }: WebhookConfig,
  paths: string,
  api: KubeApi,
  clock: Clock,
  log: StructuredLog,
): ReviewCallers {
  if (clients !== null) return certifiedCallers(clients.names);
  if (registration === 'replicas') return new SecretPaths({ api, namespace, name: paths, clock, log });
  if (registration !== 'none')
    return new SecretPaths({ api, namespace, name: paths, clock, log, rotateMs: Infinity, keepsPrevious: true });
  log.warn({}, 'every caller that reaches the port may request reviews: with --no-register, set --client-ca-file');
  return ANY_CALLER;
}

/**
 * Issues a certificate of a new authority and discards the authority's key, so that no further certificate can be
 * issued.
 */
export async function issue(
  hosts: readonly string[],
  days = CERTIFICATE_DAYS,
  name = 'gpu-manager',
): Promise<IssuedCertificate> {
  // A unique name: clients confuse two authorities of the same name in a bundle.
  const authority = await certificateAuthority(`${name}-${randomBytes(8).toString('hex')}`, days);
  return { ...(await authority.server(hosts)), authority: authority.certificate };
}

/** Reads the certificate files. */
export async function readCertificate({
  certFile,
  keyFile,
  authorityFile,
}: NonNullable<WebhookConfig['tls']>): Promise<IssuedCertificate> {
  return {
    certificate: await readText(certFile),
    key: await readText(keyFile),
    authority: await readText(authorityFile),
  };
}

function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartupError(`${file} cannot be read: ${fileReason(error)}`);
  });
}
