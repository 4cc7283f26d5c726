import { X509Certificate } from 'node:crypto';
import type { KubeApi } from '../client.js';
import type { Certificate } from '../../host/certificate.js';
import { sharedSecret, type SecretData } from './shared-secret.js';

/** A certificate and the certificate of its authority. */
export interface IssuedCertificate extends Certificate {
  /** PEM; followed by unexpired earlier authorities, whose certificates other replicas may still serve. */
  readonly authority: string;
  /** PEM of the authority that signs client certificates; absent where clients need none. */
  readonly clientAuthority?: string | null;
}

export interface CertificateSecretOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** DNS names and IP addresses that the certificate must contain. */
  readonly hosts: readonly string[];
  readonly issue: (hosts: readonly string[]) => Promise<IssuedCertificate>;
  readonly now: () => number;
  /** How long before its expiry a certificate is renewed; by default 30 days. */
  readonly renewMs?: number;
}

const RENEW_MS = 30 * 86_400_000;

/**
 * Returns the certificate that all replicas share in a Secret. A missing certificate, one that expires soon, and one
 * for other names are replaced. Each new certificate has a new authority; the bundle keeps earlier authorities until
 * they expire, so that clients that trust the bundle trust every replica, before and after the renewal.
 */
export async function sharedCertificate(options: CertificateSecretOptions): Promise<IssuedCertificate> {
  const { api, namespace, name, hosts, issue } = options;
  const data = await sharedSecret({
    api,
    namespace,
    name,
    type: 'kubernetes.io/tls',
    next: async (present) => {
      const known = issuedOf(present);
      if (known !== null && isUsable(known, options)) return null;
      const issued = await issue(hosts);
      return {
        ...present,
        'tls.key': issued.key,
        'tls.crt': issued.certificate,
        'ca.crt': [issued.authority, ...unexpired(known?.authority ?? '', options.now())].join(''),
      };
    },
  });
  const issued = issuedOf(data);
  if (issued === null)
    throw new Error(`the Secret ${namespace}/${name} has no certificate: expected tls.crt, tls.key and ca.crt`);
  return issued;
}

function issuedOf(data: SecretData): IssuedCertificate | null {
  const text = (name: string): string => data[name] ?? '';
  const issued = { key: text('tls.key'), certificate: text('tls.crt'), authority: text('ca.crt') };
  return issued.key === '' || issued.certificate === '' || issued.authority === '' ? null : issued;
}

/** The certificates of a bundle that have not expired. */
function unexpired(bundle: string, now: number): readonly string[] {
  const found = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];
  return found.filter((text) => {
    try {
      return Date.parse(new X509Certificate(text).validTo) > now;
    } catch {
      return false;
    }
  });
}

function isUsable(
  { certificate }: IssuedCertificate,
  { hosts, now, renewMs = RENEW_MS }: CertificateSecretOptions,
): boolean {
  try {
    const read = new X509Certificate(certificate);
    const fits = hosts.every(
      (host) => (/^[\d.]+$|:/.test(host) ? read.checkIP(host) : read.checkHost(host)) !== undefined,
    );
    return fits && Date.parse(read.validTo) - now() > renewMs;
  } catch {
    return false;
  }
}
