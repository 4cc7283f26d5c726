import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { StructuredLog } from '../../host/structured-log.js';
import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import type { IssuedCertificate } from './certificate-secret.js';

export interface CertificateKeeperOptions {
  readonly certificate: IssuedCertificate;
  /** Returns the certificate that should be served now. */
  readonly currentCertificate: () => Promise<IssuedCertificate>;
  /** Writes the authority of `currentCertificate` into the webhook configuration. */
  readonly announce: () => Promise<void>;
  /** Sets the certificate for new connections. */
  readonly serve: (certificate: IssuedCertificate) => void;
  readonly log: StructuredLog;
  readonly clock: Clock;
  readonly everyMs?: number;
  /** How long the old certificate is served after a new authority was announced, until API servers have read it. */
  readonly overlapMs?: number;
}

/**
 * Serves the current certificate: reloads it when it was renewed or its files changed. A certificate of a new authority
 * is served only after that authority was announced and API servers had time to read it.
 */
export class CertificateKeeper {
  readonly #options: Required<CertificateKeeperOptions>;
  readonly #rounds: Rounds;
  #served: IssuedCertificate;
  /** The authority that was announced last, and when. */
  #announced: { readonly authority: string; readonly at: number };

  constructor(options: CertificateKeeperOptions) {
    this.#options = { everyMs: 60_000, overlapMs: 30_000, ...options };
    this.#rounds = new Rounds(options.clock, Math.min(this.#options.everyMs, this.#options.overlapMs), () =>
      this.#refresh(),
    );
    this.#served = options.certificate;
    this.#announced = { authority: options.certificate.authority, at: -Infinity };
  }

  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  async #refresh(): Promise<void> {
    const { currentCertificate, announce, serve, log, clock, overlapMs } = this.#options;
    try {
      const wanted = await currentCertificate();
      if (
        wanted.certificate === this.#served.certificate &&
        wanted.key === this.#served.key &&
        wanted.clientAuthority === this.#served.clientAuthority &&
        wanted.authority === this.#announced.authority
      )
        return;
      if (!isPair(wanted)) throw new Error('the certificate and the key do not belong together');
      if (wanted.authority !== this.#announced.authority) {
        await announce();
        this.#announced = { authority: wanted.authority, at: clock.now() };
      }
      if (clock.now() - this.#announced.at < overlapMs) return;
      if (wanted.certificate === this.#served.certificate && wanted.clientAuthority === this.#served.clientAuthority)
        return;
      serve(wanted);
      this.#served = wanted;
      log.info({ until: new X509Certificate(wanted.certificate).validTo }, 'serving the renewed certificate');
    } catch (error) {
      log.warn({ err: error }, 'renewing the certificate failed; still serving the old one');
    }
  }
}

/** False while an administrator replaces the two files one after the other. */
function isPair({ certificate, key }: IssuedCertificate): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}
