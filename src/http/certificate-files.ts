import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { TlsMaterial, TlsSource } from './tls.js';

export interface CertificateFilesOptions {
  /** Path of a PEM file. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authority that must have signed the callers' certificates; null: callers need none. */
  readonly clientCaFile?: string | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** Files are compared instead of watched: a mounted secret changes by a moved link, and this delay is acceptable. */
const LOOK_MS = 10_000;

/** A certificate in files, reloaded when they change. */
export class CertificateFiles implements TlsSource {
  readonly #options: CertificateFilesOptions;
  #current: TlsMaterial | null = null;
  #refused: string | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  get asksForCertificate(): boolean {
    return (this.#options.clientCaFile ?? null) !== null;
  }

  async read(): Promise<TlsMaterial> {
    const { certFile, keyFile, clientCaFile = null } = this.#options;
    const [certificate, key, clientAuthority] = await Promise.all([
      readFile(certFile, 'utf8'),
      readFile(keyFile, 'utf8'),
      clientCaFile === null ? null : readFile(clientCaFile, 'utf8'),
    ]);
    // Refuses a key that does not belong to the certificate. The check runs here, so that the error does not first
    // appear at a TLS handshake.
    createSecureContext({ cert: certificate, key, ca: clientAuthority ?? undefined });
    this.#current = { certificate, key, clientAuthority };
    return this.#current;
  }

  follow(use: (material: TlsMaterial) => void): void {
    const { certFile, clock, log } = this.#options;
    this.#cancel = clock.every(LOOK_MS, () => {
      const before = this.#current;
      this.read().then(
        (material) => {
          this.#refused = null;
          if (before !== null && same(material, before)) return;
          use(material);
          log.info({ file: certFile }, 'the TLS certificate was renewed');
        },
        (error: Error) => {
          if (this.#refused === error.message) return;
          this.#refused = error.message;
          log.warn(
            { file: certFile, reason: error.message },
            'the new TLS certificate is not valid; the previous one stays in use',
          );
        },
      );
    });
  }

  stop(): void {
    this.#cancel();
  }
}

function same(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.certificate === b.certificate && a.key === b.key && a.clientAuthority === b.clientAuthority;
}
