import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { certificateAuthority } from '../host/certificate.js';
import { systemClock, type Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { InformerTiming } from '../kube/informer.js';
import type { KubeApi } from '../kube/client.js';
import { sharedCertificate, type Issued } from './admission/certificate-secret.js';
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
  /** Own port of the probes, without TLS; null: `port` answers them only. */
  readonly probePort: number | null;
  /** Null: the access of the pod that we run in. */
  readonly kubeconfig: string | null;
  /** Where the Secret with the certificate and the Lease are. */
  readonly namespace: string;
  /** Service through which the API server reaches us, in that namespace; ignored with a URL. */
  readonly service: string;
  /** `https://host:port` where we are reached without a service; null for the service. */
  readonly url: string | null;
  /** Files; null for a certificate that the replicas make themselves and share in a Secret. */
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly authorityFile: string } | null;
  /** Who signs the certificates of API servers, and their common names; null: they are known by a secret path. */
  readonly clients: { readonly authorityFile: string; readonly names: readonly string[] } | null;
  /** Whether to write the webhook configuration. */
  readonly register: boolean;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Whether every namespace may use groups whose chain has no selector of namespaces. */
  readonly openGroups: boolean;
  readonly identity: string | null;
  /** File of the audit chain of this replica's decisions; `-`: standard output; null: no audit. */
  readonly audit: string | null;
  readonly refreshMs: number;
  readonly leaseMs: number;
  /** Null: the cluster is not divided. */
  readonly arbitrator: ArbitratorConfig | null;
  readonly watchTiming?: Partial<InformerTiming>;
}

const SECRET = 'gpu-manager-quota-tls';
const PATHS_SECRET = 'gpu-manager-quota-webhook';
const WEBHOOKS = 'gpu-manager-quota';
const SERVICE_PORT = 443;
const CERTIFICATE_DAYS = 365;

/** The composition root of `gpu-manager quota serve`: the parts in the order in which they start. */
export async function buildQuotaServe(config: QuotaServeConfig, log: Log): Promise<readonly Part[]> {
  const clock = systemClock;
  const client = await openKubeClient(config.kubeconfig, clock);
  const api = watchableApi(client, clock, log, config.watchTiming);
  const hosts =
    config.url === null
      ? [`${config.service}.${config.namespace}.svc`]
      : [new URL(config.url).hostname.replace(/^\[|\]$/g, '')];
  const { tls, clients } = config;
  const currentCertificate = async (): Promise<Issued> => ({
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

/** Rejects with a `StartupError` where the file cannot be written to, or is no whole chain. */
async function openAudit(target: string | null, log: Log): Promise<AuditFile | null> {
  if (target === null) return null;
  const failed = (error: Error): void =>
    log.error({ err: error, file: target }, 'writing the audit failed; decisions are no longer written to it');
  if (target === '-') return auditStream(process.stdout, failed);
  const opened = await openAuditFile(target, failed).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`--audit: ${target}: ${error.code ?? error.message}`);
  });
  if (!opened.ok)
    throw new StartupError(`--audit: ${target}: line ${opened.line}: ${opened.reason}; move the file away`);
  return opened.file;
}

/** Only the API server may ask; how it is known depends on what the cluster and its administrator give. */
function callersOf(
  { clients, register, namespace }: QuotaServeConfig,
  api: KubeApi,
  clock: Clock,
  log: Log,
): ReviewCallers {
  if (clients !== null) return certifiedCallers(clients.names);
  if (register) return new SecretPaths({ api, namespace, name: PATHS_SECRET, clock, log });
  log.warn({}, 'every caller that reaches the port may ask for reviews: with --no-register, give --client-ca-file');
  return ANY_CALLER;
}

/** A certificate of an authority whose key is forgotten at once: nobody can sign another one. */
export async function issue(hosts: readonly string[], days = CERTIFICATE_DAYS): Promise<Issued> {
  // Two authorities of one name in a bundle are taken for each other.
  const authority = await certificateAuthority(`gpu-manager-quota-${randomBytes(8).toString('hex')}`, days);
  return { ...(await authority.server(hosts)), authority: authority.certificate };
}

/** Reads what was given as files. */
export async function readCertificate({
  certFile,
  keyFile,
  authorityFile,
}: NonNullable<QuotaServeConfig['tls']>): Promise<Issued> {
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
