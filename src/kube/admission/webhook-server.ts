import type { Clock } from '../../host/clock.js';
import { LimitedLog } from '../../host/limited-log.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { ListenerLimits } from '../../http/limits.js';
import { Listener } from '../../http/listener.js';
import type { Metrics } from '../../http/metrics.js';
import { probeListener } from '../../http/probe-listener.js';
import { metricsRoute } from '../../http/probe-routes.js';
import type { TokenAccess } from '../../http/token-access.js';
import { fixedTls } from '../../http/tls.js';
import { CertificateKeeper } from './certificate-keeper.js';
import type { IssuedCertificate } from './certificate-secret.js';
import type { ReviewCallers } from './review-callers.js';
import { reviewRoutes, type ReviewRoutesOptions } from './review-routes.js';

export interface WebhookServerOptions extends Pick<ReviewRoutesOptions, 'reviews' | 'decided'> {
  readonly address: string;
  readonly port: number;
  /** Separate port of the probes on the same address, without TLS; null: probes only on `port`. */
  readonly probePort: number | null;
  readonly certificate: IssuedCertificate;
  /** Returns the certificate to serve, called every minute; absent: the certificate never changes. */
  readonly currentCertificate?: () => Promise<IssuedCertificate>;
  /** How long the old certificate is served after `register` announced a new one; by default half a minute. */
  readonly overlapMs?: number;
  readonly callers: ReviewCallers;
  /** Decides who reads the metrics; absent or null: everybody who reaches the port. */
  readonly readers?: TokenAccess | null;
  /** Why the service cannot decide yet; null once it can. */
  readonly notReady: () => string | null;
  readonly metrics: Metrics;
  /** Writes the webhook configurations with the present authority and path. */
  readonly register: () => Promise<void>;
  readonly log: StructuredLog;
  readonly clock: Clock;
}

/**
 * An object has at most 1.5 MiB and a review contains two objects. One API server calls from one address. By default it
 * works on 600 requests at once; it keeps 25 connections and opens another for each further call, and a connection that
 * is closed to it refuses an object of a user. Connections with an accepted review do not count for the rate.
 */
const LIMITS: Partial<ListenerLimits> = {
  connections: 2_048,
  connectionsPerAddress: 1_024,
  connectionRate: { burst: 2_048, perSecond: 50 },
  bodyBytes: 8 << 20,
  bodiesBytes: 64 << 20,
  bodiesBytesPerAddress: 32 << 20,
};

/** Serves admission reviews, probes and metrics, and keeps certificate and secret path current. */
export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #server: Listener;
  readonly #probes: Listener | null;
  readonly #keeper: CertificateKeeper | null;

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    const { address, port, probePort, certificate, currentCertificate, register, log, clock } = options;
    const notReady = (): readonly string[] => [options.notReady() ?? []].flat();
    const reviewRoute = reviewRoutes({ ...options, log: new LimitedLog(log, clock) });
    const metrics = metricsRoute(options.metrics);
    this.#server = new Listener({
      address,
      port,
      tls: fixedTls({ ...certificate, isCertificateOptional: true }),
      limits: LIMITS,
      notReady,
      access: options.readers ?? null,
      route: (path) => (path === '/metrics' ? metrics : reviewRoute(path)),
      log,
    });
    this.#probes = probePort === null ? null : probeListener({ address, port: probePort, notReady, log });
    this.#keeper =
      currentCertificate === undefined
        ? null
        : new CertificateKeeper({
            certificate,
            currentCertificate,
            log,
            clock,
            announce: register,
            ...(options.overlapMs === undefined ? {} : { overlapMs: options.overlapMs }),
            serve: ({ certificate: served, key, clientAuthority = null }) =>
              this.#server.renew({ certificate: served, key, clientAuthority }),
          });
  }

  /** The port that the webhooks listen on. */
  get port(): number {
    return this.#server.port;
  }

  /** The separate port of the probes; null for none. */
  get probePort(): number | null {
    return this.#probes?.port ?? null;
  }

  /** Rejects if the secret path cannot be read or the address cannot be listened on. */
  async start(): Promise<void> {
    const { callers, register } = this.#options;
    await callers.start();
    await this.#probes?.start();
    await this.#server.start();
    callers.onChange(register);
  }

  /** Follows renewals of the certificate; to be called after the first registration. */
  keepCertificate(): void {
    this.#keeper?.start();
  }

  /** Resolves when no review is in progress. */
  async stop(): Promise<void> {
    await Promise.all([this.#keeper?.stop(), this.#options.callers.stop()]);
    await this.#server.stop();
    await this.#probes?.stop(0);
  }
}
