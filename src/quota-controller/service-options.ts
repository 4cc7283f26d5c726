import type { Clock } from '../host/clock.js';
import type { StructuredLog } from '../host/structured-log.js';
import type { IssuedCertificate } from '../kube/admission/certificate-secret.js';
import type { TokenAccess } from '../http/token-access.js';
import type { ReviewCallers } from '../kube/admission/review-callers.js';
import type { WebhookTarget } from '../kube/admission/webhook-registration.js';
import type { ServerTime } from '../kube/server-time.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import type { ArbitratorPolicy, QuotaEvent, EvaluationOptions } from '../quota/index.js';
import type { QuotaMetrics } from './quota-metrics.js';

/** How long an admission is reserved until its object is observed. */
export const RESERVATION_MS = 60_000;

export interface QuotaServiceOptions {
  readonly api: WatchableApi;
  /** The clock of the API server; by default this machine's clock. */
  readonly serverTime?: ServerTime;
  readonly log: StructuredLog;
  readonly metrics: QuotaMetrics;
  readonly address: string;
  readonly port: number;
  /** Separate port of the probes on the same address, without TLS; null: probes only on `port`. */
  readonly probePort?: number | null;
  readonly certificate: IssuedCertificate;
  /** Restricts the callers of reviews; by default every caller that reaches the port. */
  readonly callers?: ReviewCallers;
  /** Decides who reads the metrics; by default every caller that reaches the port. */
  readonly readers?: TokenAccess | null;
  /** Returns the certificate to serve, called every minute; by default the certificate never changes. */
  readonly currentCertificate?: () => Promise<IssuedCertificate>;
  /** How long the old certificate is served after a new one was announced; see `CertificateKeeper`. */
  readonly overlapMs?: number;
  /**
   * How the API server reaches this service, given its port; null if this program does not write the webhook
   * configuration.
   */
  readonly target: ((port: number) => WebhookTarget) | null;
  /**
   * Whether every namespace may use a group if no group on its path to the root has a namespaceSelector; default true.
   */
  readonly openGroups?: boolean;
  readonly webhookName: string;
  readonly unlabelled: 'Ignore' | 'Fail';
  /** Namespace of the Lease. */
  readonly namespace: string;
  readonly identity: string;
  readonly evaluation?: EvaluationOptions;
  /** Configuration of the arbitrator, which runs on the leader; null for no arbitrator. */
  readonly arbitrator?: ArbitratorConfig | null;
  /** Whether the quota is an AdmissionCheck of Kueue; default false. */
  readonly kueue?: boolean;
  readonly clock?: Clock;
  /** Called with every event of this replica after it is durable. */
  readonly audited?: (event: QuotaEvent) => void;
  readonly kindsMs?: number;
  readonly reservationMs?: number;
  readonly othersMs?: number;
  readonly refreshMs?: number;
  readonly leaseMs?: number;
  readonly retryMs?: number;
}

/** Configuration of the arbitrator; see `ArbitratorOptions`. */
export interface ArbitratorConfig {
  readonly mode: 'plan' | 'on';
  readonly policy: ArbitratorPolicy;
  readonly periodMs?: number;
  readonly writeConcurrency?: number;
}
