import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { certificateAuthority } from '../host/certificate.js';
import { systemClock, type Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { InformerTiming } from '../kube/informer.js';
import type { KubeApi } from '../kube/client.js';
import { sharedCertificate, type IssuedCertificate } from './admission/certificate-secret.js';
import { ANY_CALLER, certifiedCallers, type ReviewCallers } from './admission/review-callers.js';
import { SecretPaths } from './admission/secret-paths.js';
import { auditStream, openAuditFile, type AuditFile } from '../quota/audit/audit-file.js';
import { QuotaMetrics } from './quota-metrics.js';
import { QuotaService, type ArbitratorConfig, type QuotaServiceOptions } from './service.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Part } from '../host/lifecycle.js';
import { watchableApi } from '../kube/watchable-api.js';
import { StartupError } from '../host/startup-error.js';

export interface QuotaServeConfig {
  readonly address: string;
  readonly port: number;
  /** Separate port for probes without TLS; null: probes only on `port`. */
  readonly probePort: number | null;
  /** Null: the service account of the pod. */
  readonly kubeconfig: string | null;
  /** Namespace of the Lease and of the Secret with the certificate. */
  readonly namespace: string;
  /** Service in that namespace through which the API server reaches the webhooks; ignored if `url` is set. */
  readonly service: string;
  /** `https://host:port` through which the API server reaches the webhooks; null to use the service. */
  readonly url: string | null;
  /** Certificate files; null for a certificate that the replicas create and share in a Secret. */
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly authorityFile: string } | null;
  /** Authority and common names of the API servers' client certificates; null: API servers use a secret path. */
  readonly clients: { readonly authorityFile: string; readonly names: readonly string[] } | null;
  /** Whether to write the webhook configuration. */
  readonly register: boolean;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Whether every namespace may use a group if no group on its path to the root has a namespaceSelector. */
  readonly openGroups: boolean;
  readonly identity: string | null;
  /** File of the audit chain of this replica's decisions; `-`: standard output; null: no audit. */
  readonly audit: string | null;
  readonly refreshMs: number;
  readonly leaseMs: number;
  /** Null: no arbitrator. */
  readonly arbitrator: ArbitratorConfig | null;
  readonly watchTiming?: Partial<InformerTiming>;
}

const SECRET = 'gpu-manager-quota-tls';
const PATHS_SECRET = 'gpu-manager-quota-webhook';
const WEBHOOKS = 'gpu-manager-quota';
const SERVICE_PORT = 443;
const CERTIFICATE_DAYS = 365;

/** The composition root of `gpu-manager quota serve`: the parts in the order of their start. */
export async function buildQuotaServe(config: QuotaServeConfig, log: Log): Promise<readonly Part[]> {
  const clock = systemClock;
  const client = await openKubeClient(config.kubeconfig, clock);
  const api = watchableApi(client, clock, log, config.watchTiming);
  const hosts =
    config.url === null
      ? [`${config.service}.${config.namespace}.svc`]
      : [new URL(config.url).hostname.replace(/^\[|\]$/g, '')];
  const { tls, clients } = config;
  const currentCertificate = async (): Promise<IssuedCertificate> => ({
    ...(tls === null
      ? await sharedCertificate({ api, namespace, name: SECRET, hosts, issue, now: () => clock.now() })
      : await readCertificate(tls)),
    clientAuthority: clients === null ? null : await readText(clients.authorityFile),
  });
  const { address, port, probePort, namespace, unlabelled, refreshMs, leaseMs, arbitrator } = config;
  const certificate = await currentCertificate();
  const audit = await openAudit(config.audit, log);
  const options: QuotaServiceOptions = {
    api,
    ...(audit === null ? {} : { audited: (event) => audit.append(event) }),
    serverTime: client.serverTime,
    log,
    metrics: new QuotaMetrics(),
    address,
    port,
    probePort,
    callers: callersOf(config, api, clock, log),
    certificate,
    currentCertificate,
    namespace,
    unlabelled,
    openGroups: config.openGroups,
    refreshMs,
    leaseMs,
    arbitrator,
    identity: config.identity ?? `${hostname()}-${process.pid}`,
    webhookName: WEBHOOKS,
    target: !config.register
      ? null
      : () =>
          config.url === null
            ? { service: { namespace, name: config.service, port: SERVICE_PORT } }
            : { url: config.url.replace(/\/$/, '') },
  };
  const service = new QuotaService(options);
  return [
    { name: 'api-client', start: async () => undefined, stop: async () => client.close() },
    { name: 'audit', start: async () => undefined, stop: async () => void (await audit?.close()) },
    {
      name: 'quota',
      start: async () => {
        await service.start();
        log.info(
          { address, port: service.port, registered: config.register, arbitrator: arbitrator?.mode ?? 'off' },
          'quota service started',
        );
      },
      stop: () => service.stop(),
    },
  ];
}

/** Opens the audit file; rejects with a `StartupError` if it is not writable or its chain is broken. */
async function openAudit(target: string | null, log: Log): Promise<AuditFile | null> {
  if (target === null) return null;
  const failed = (error: Error): void =>
    log.error({ err: error, file: target }, 'writing the audit failed; later decisions are not audited');
  if (target === '-') return auditStream(process.stdout, failed);
  const opened = await openAuditFile(target, failed).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`--audit: ${target}: ${error.code ?? error.message}`);
  });
  if (!opened.ok)
    throw new StartupError(`--audit: ${target}: line ${opened.line}: ${opened.reason}; move the file away`);
  return opened.file;
}

/** Restricts reviews to the API server, recognised by client certificate or secret path. */
function callersOf(
  { clients, register, namespace }: QuotaServeConfig,
  api: KubeApi,
  clock: Clock,
  log: Log,
): ReviewCallers {
  if (clients !== null) return certifiedCallers(clients.names);
  if (register) return new SecretPaths({ api, namespace, name: PATHS_SECRET, clock, log });
  log.warn({}, 'every caller that reaches the port may request reviews: with --no-register, set --client-ca-file');
  return ANY_CALLER;
}

/**
 * Issues a certificate of a new authority and discards the authority's key, so that no further certificate can be
 * issued.
 */
export async function issue(hosts: readonly string[], days = CERTIFICATE_DAYS): Promise<IssuedCertificate> {
  // A unique name: clients confuse two authorities of the same name in a bundle.
  const authority = await certificateAuthority(`gpu-manager-quota-${randomBytes(8).toString('hex')}`, days);
  return { ...(await authority.server(hosts)), authority: authority.certificate };
}

/** Reads the certificate files. */
export async function readCertificate({
  certFile,
  keyFile,
  authorityFile,
}: NonNullable<QuotaServeConfig['tls']>): Promise<IssuedCertificate> {
  return {
    certificate: await readText(certFile),
    key: await readText(keyFile),
    authority: await readText(authorityFile),
  };
}

function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartupError(`${file} cannot be read: ${(error as Error).message}`);
  });
}
