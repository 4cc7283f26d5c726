import { hostname } from 'node:os';
import { fileReason } from '../host/file-reason.js';
import { systemClock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { InformerTiming } from '../kube/informer.js';
import { groupsWithoutSelectorAreOpen } from './policy/groups-without-selector.js';
import { registerOnce, webhookIdentity, type WebhookConfig } from '../kube/admission/webhook-identity.js';
import { listAll } from '../kube/list-all.js';
import { readGroup } from '../kube/quota/group-object.js';
import { GROUPS_PATH, POLICIES_PATH, QUOTA_LEASE } from '../kube/quota/names.js';
import { auditStream, KNOWN_KINDS, openAuditFile, type AuditFile } from '../quota/index.js';
import { register } from './admission/quota-webhooks.js';
import { servedKinds } from './workloads/kinds.js';
import { NO_POLICY, readPolicy } from './policy/policy-object.js';
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
  const { currentCertificate, callers, target, overlapMs } = webhookIdentity(config, NAMES, api, clock, log);
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
    overlapMs,
    namespace,
    unlabelled,
    openGroups: config.openGroups ?? (await groupsWithoutSelectorAreOpen({ api, namespace, lease: QUOTA_LEASE, log })),
    kueue,
    refreshMs,
    leaseMs,
    arbitrator,
    identity: config.identity ?? `${hostname()}-${process.pid}`,
    webhookName: WEBHOOKS,
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
          { address, port: service.port, registration: config.registration, arbitrator: arbitrator?.mode ?? 'off' },
          'quota service started',
        );
      },
      stop: () => service.stop(),
    },
  ];
}

/**
 * The run of a Job that registers the webhooks of `quota serve --register=job`: reads the policy, the groups and the
 * kinds that the API server serves. Rejects if the API server fails.
 */
export async function registerQuota(
  config: Pick<QuotaServeConfig, 'unlabelled'> & WebhookConfig,
  log: Log,
  connect = () => openKubeClient(config.kubeconfig, systemClock),
): Promise<void> {
  const client = await connect();
  try {
    const policies = (await listAll(client, 'the quota policies', POLICIES_PATH)).map(readPolicy);
    const policy = policies.find((found) => found !== null)?.policy ?? NO_POLICY;
    const groups = (await listAll(client, 'the quota groups', GROUPS_PATH)).map(readGroup);
    const kinds = await servedKinds(client, [...policy.kinds, ...KNOWN_KINDS], (path) =>
      log.warn({ path }, 'a kind of the quota policy is not registered: allow this account, too, to list it'),
    );
    await registerOnce(config, NAMES, client, systemClock, log, (announced) =>
      register(client, {
        name: WEBHOOKS,
        announced,
        unlabelled: config.unlabelled,
        kinds,
        requireLabel: policy.requireLabel,
        defaultFor: groups.flatMap(({ defaultFor, terminating }) => (terminating ? [] : (defaultFor ?? []))),
        ownNamespace: config.namespace,
      }),
    );
    log.info({ kinds: kinds.length }, 'the webhooks of the quota service are registered');
  } finally {
    client.close();
  }
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
