import { networkInterfaces } from 'node:os';
import { certificateAuthority } from '../host/certificate.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { TlsMaterial, TlsSource } from './tls.js';

const DAY_MS = 86_400_000;
const VALID_DAYS = 90;
const RENEW_MS = 60 * DAY_MS;
/** A timer of Node holds 24 days at most, and a machine may sleep: the age is looked at, not waited for. */
const LOOK_MS = 3_600_000;

export interface SelfSignedOptions {
  /** Names by which callers know this machine. Its addresses are added. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A certificate that the program makes for itself at its start, as kubelets do: tokens cross the network encrypted.
 * Callers cannot verify it; give files for that.
 */
export class SelfSigned implements TlsSource {
  readonly asksForCertificate = false;
  readonly #options: SelfSignedOptions;
  #madeAt = 0;
  #cancel: () => void = () => undefined;

  constructor(options: SelfSignedOptions) {
    this.#options = options;
  }

  async read(): Promise<TlsMaterial> {
    const { names, clock } = this.#options;
    const addresses = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
    // Of IPv6 addresses of a link, the zone is no part of a certificate.
    const plain = addresses.map((address) => address.replace(/%.*$/u, ''));
    const authority = await certificateAuthority(names[0] ?? 'localhost', VALID_DAYS);
    const issued = await authority.server([...new Set([...names, 'localhost', ...plain])]);
    this.#madeAt = clock.now();
    return { ...issued, clientAuthority: null };
  }

  follow(use: (material: TlsMaterial) => void): void {
    const { clock, log } = this.#options;
    this.#cancel = clock.every(LOOK_MS, () => {
      if (clock.now() - this.#madeAt < RENEW_MS) return;
      this.read().then(
        (material) => {
          use(material);
          log.info({}, 'the self-signed TLS certificate was renewed');
        },
        (error: Error) => log.warn({ reason: error.message }, 'renewing the self-signed TLS certificate failed'),
      );
    });
  }

  stop(): void {
    this.#cancel();
  }
}
