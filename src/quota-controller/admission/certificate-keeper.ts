import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { QuotaLog } from '../log.js';
import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import type { Issued } from './certificate-secret.js';

export interface CertificateKeeperOptions {
  readonly certificate: Issued;
  /** The certificate that is to be served now. */
  readonly currentCertificate: () => Promise<Issued>;
  /** Has the API server trust what `currentCertificate` says. */
  readonly announce: () => Promise<void>;
  /** Shows a certificate to connections made from now on. */
  readonly serve: (certificate: Issued) => void;
  readonly log: QuotaLog;
  readonly clock: Clock;
  readonly everyMs?: number;
  /** So long after an authority was announced its certificates are served: API servers have to hear of it. */
  readonly overlapMs?: number;
}

/**
 * Sees to it that the certificate which is served is the one that should be: a renewed one, or files that changed. A
 * certificate of a new authority is served only after that was announced and API servers had time to notice; until
 * then the old one is.
 */
export class CertificateKeeper {
  readonly #options: Required<CertificateKeeperOptions>;
  readonly #rounds: Rounds;
  #served: Issued;
  /** What was announced last, and since when. */
  #announced: { readonly authority: string; readonly at: number };

  constructor(options: CertificateKeeperOptions) {
    this.#options = { everyMs: 60_000, overlapMs: 30_000, ...options };
    this.#rounds = new Rounds(options.clock, Math.min(this.#options.everyMs, this.#options.overlapMs), () =>
      this.#look(),
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

  async #look(): Promise<void> {
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
      if (!isPair(wanted)) throw new Error('the certificate is not of its key');
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

/** False while files are being replaced one after the other. */
function isPair({ certificate, key }: Issued): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}
