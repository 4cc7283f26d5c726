import { X509Certificate } from 'node:crypto';
import type { KubeApi } from '../../kube/client.js';
import type { Certificate } from '../../host/certificate.js';
import { sharedSecret, type SecretData } from './shared-secret.js';

/** A certificate, and that of the authority that signed it. */
export interface Issued extends Certificate {
  /** PEM; behind it those of earlier authorities whose certificates others may still show. */
  readonly authority: string;
  /** PEM of the authority of callers' certificates, where they are asked for one. */
  readonly clientAuthority?: string | null;
}

export interface CertificateSecretOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Names and addresses that the certificate has to be for. */
  readonly hosts: readonly string[];
  /** Makes a certificate. */
  readonly issue: (hosts: readonly string[]) => Promise<Issued>;
  readonly now: () => number;
}

/** So long before it ends a certificate is replaced. */
const RENEW_MS = 30 * 86_400_000;

/**
 * The certificate that all replicas share: that of the Secret, or a new one, put there, where it is missing, about to
 * end or for other names. A new one has a new authority; the earlier ones stay beside it until they end, so that
 * whoever trusts what the Secret says trusts every replica, whether it has noticed yet or not.
 */
export async function sharedCertificate(options: CertificateSecretOptions): Promise<Issued> {
  const { api, namespace, name, hosts, issue } = options;
  const data = await sharedSecret({
    api,
    namespace,
    name,
    type: 'kubernetes.io/tls',
    next: async (present) => {
      const known = issuedOf(present);
      if (known !== null && isUsable(known, options)) return null;
      const made = await issue(hosts);
      return {
        ...present,
        'tls.key': made.key,
        'tls.crt': made.certificate,
        'ca.crt': [made.authority, ...unended(known?.authority ?? '', options.now())].join(''),
      };
    },
  });
  const issued = issuedOf(data);
  if (issued === null) throw new Error(`the Secret ${namespace}/${name} holds no certificate`);
  return issued;
}

function issuedOf(data: SecretData): Issued | null {
  const text = (name: string): string => data[name] ?? '';
  const issued = { key: text('tls.key'), certificate: text('tls.crt'), authority: text('ca.crt') };
  return issued.key === '' || issued.certificate === '' || issued.authority === '' ? null : issued;
}

/** The certificates of a bundle that have not ended. */
function unended(bundle: string, now: number): readonly string[] {
  const found = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];
  return found.filter((text) => {
    try {
      return Date.parse(new X509Certificate(text).validTo) > now;
    } catch {
      return false;
    }
  });
}

function isUsable({ certificate }: Issued, { hosts, now }: CertificateSecretOptions): boolean {
  try {
    const read = new X509Certificate(certificate);
    const fits = hosts.every(
      (host) => (/^[\d.]+$|:/.test(host) ? read.checkIP(host) : read.checkHost(host)) !== undefined,
    );
    return fits && Date.parse(read.validTo) - now() > RENEW_MS;
  } catch {
    return false;
  }
}
