import { hostname } from 'node:os';
import { fileReason } from '../host/file-reason.js';
import { systemClock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { InformerTiming } from '../kube/informer.js';
import { groupsWithoutSelectorAreOpen } from './groups-without-selector.js';
import { QUOTA_LEASE } from '../kube/quota/names.js';
import { webhookIdentity, type WebhookConfig } from '../kube/admission/webhook-identity.js';
import { auditStream, openAuditFile, type AuditFile } from '../quota/index.js';
import { QuotaMetrics } from './quota-metrics.js';
import type { ArbitratorConfig, QuotaServiceOptions } from './service-options.js';
import { QuotaService } from './service.js';
import { tokenReaders } from '../kube/token-review.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Part } from '../host/lifecycle.js';
import { watchableApi } from '../kube/watchable-api.js';
import { StartupError } from '../host/startup-error.js';

export interface QuotaServeConfig extends WebhookConfig {
  readonly unlabelled: 'Ignore' | 'Fail';
  /**
   * Whether every namespace may use a group if no group on its path to the root has a namespaceSelector; null: as
   * decided at the first start of the service in this cluster.
   */
  readonly openGroups: boolean | null;
  readonly identity: string | null;
  /** File of the audit chain of this replica's decisions; `-`: standard output; null: no audit. */
  readonly audit: string | null;
  /** Whether the quota is an AdmissionCheck of Kueue. */
  readonly kueue: boolean;
  readonly refreshMs: number;
  readonly leaseMs: number;
  /** Null: no arbitrator. */
  readonly arbitrator: ArbitratorConfig | null;
  readonly watchTiming?: Partial<InformerTiming>;
}

/** The CPU time of a review falls most during the first thousand. */
const REHEARSED_REVIEWS = 1_500;

const WEBHOOKS = 'gpu-manager-quota';
const NAMES = { certificate: `${WEBHOOKS}-tls`, paths: `${WEBHOOKS}-webhook`, authority: WEBHOOKS };

/** The composition root of `gpu-manager quota serve`: the parts in the order of their start. */
export async function buildQuotaServe(
  config: QuotaServeConfig,
  log: Log,
  connect = () => openKubeClient(config.kubeconfig, systemClock),
): Promise<readonly Part[]> {
  const clock = systemClock;
  const client = await connect();
  const api = watchableApi(client, clock, log, config.watchTiming);
  const { currentCertificate, callers, target } = webhookIdentity(config, NAMES, api, clock, log);
  const { address, port, probePort, namespace, unlabelled, kueue, refreshMs, leaseMs, arbitrator } = config;
  const certificate = await currentCertificate();
  const audit = await openAudit(config.audit, log);
  const options: QuotaServiceOptions = {
    api,
    audited: audit === null ? undefined : (event) => audit.append(event),
    serverTime: client.serverTime,
    log,
    metrics: new QuotaMetrics(),
    address,
    port,
    probePort,
    callers,
    readers: tokenReaders(config.tokenReview, client, clock),
    certificate,
    currentCertificate,
    namespace,
    unlabelled,
    openGroups: config.openGroups ?? (await groupsWithoutSelectorAreOpen({ api, namespace, lease: QUOTA_LEASE, log })),
    kueue,
    refreshMs,
    leaseMs,
    arbitrator,
    identity: config.identity ?? `${hostname()}-${process.pid}`,
    webhookName: WEBHOOKS,
    rehearsedReviews: REHEARSED_REVIEWS,
    target,
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
    throw new StartupError(`--audit: ${target}: ${fileReason(error)}`);
  });
  if (!opened.ok)
    throw new StartupError(`--audit: ${target}: line ${opened.line}: ${opened.reason}; move the file away`);
  return opened.file;
}
