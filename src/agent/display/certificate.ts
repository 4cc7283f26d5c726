import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';

/** A certificate and its key, both PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Files are compared, not watched: a mounted secret changes by a link that moves, and nobody is in a hurry. */
const LOOK_MS = 10_000;

/** A certificate in two files, followed while they change. */
export class CertificateFiles {
  readonly #certFile: string;
  readonly #keyFile: string;
  #current: Certificate | null = null;
  #refused: string | null = null;
  #cancel: () => void = () => undefined;

  constructor(certFile: string, keyFile: string) {
    this.#certFile = certFile;
    this.#keyFile = keyFile;
  }

  /** Rejects with an error for people when there is no usable pair. */
  async read(): Promise<Certificate> {
    const [cert, key] = await Promise.all([readFile(this.#certFile, 'utf8'), readFile(this.#keyFile, 'utf8')]);
    // A key that does not belong to the certificate is refused here, not at the first handshake.
    createSecureContext({ cert, key });
    this.#current = { cert, key };
    return this.#current;
  }

  /** Calls `use` with every usable pair that takes the place of the one before. */
  follow(clock: Clock, log: Log, use: (certificate: Certificate) => void): void {
    this.#cancel = clock.every(LOOK_MS, () => {
      const before = this.#current;
      this.read().then(
        (certificate) => {
          this.#refused = null;
          if (certificate.cert === before?.cert && certificate.key === before.key) return;
          use(certificate);
          log.info({ file: this.#certFile }, 'the TLS certificate was renewed');
        },
        (error: Error) => {
          if (this.#refused === error.message) return;
          this.#refused = error.message;
          log.warn(
            { file: this.#certFile, reason: error.message },
            'the new TLS certificate cannot be used; the old one stays',
          );
        },
      );
    });
  }

  stop(): void {
    this.#cancel();
  }
}
