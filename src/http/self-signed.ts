import { networkInterfaces } from 'node:os';
import { certificateAuthority } from '../host/certificate.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { TlsMaterial, TlsSource } from './tls.js';

const DAY_MS = 86_400_000;
const VALID_DAYS = 90;
const RENEW_MS = 60 * DAY_MS;
/** Node's timers are limited to 24 days, and a machine may sleep, so the age is checked periodically. */
const LOOK_MS = 3_600_000;

export interface SelfSignedOptions {
  /** Names of this machine for callers. Its addresses are added. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A certificate that the program creates at its start, as kubelets do, so that tokens are encrypted. Callers cannot
 * verify it; use certificate files for that.
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
    // A certificate has no zone of link-local IPv6 addresses.
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
