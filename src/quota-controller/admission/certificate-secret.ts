import { X509Certificate } from 'node:crypto';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { Certificate } from '../../host/certificate.js';

/** A certificate, and that of the authority that signed it. */
export interface Issued extends Certificate {
  /** PEM; behind it those of earlier authorities whose certificates others may still show. */
  readonly authority: string;
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
  const secrets = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const path = `${secrets}/${encodeURIComponent(name)}`;
  for (let attempt = 0; attempt < 5; attempt++) {
    const there = await api.request({ method: 'GET', path });
    if (!there.ok && there.code !== 'not-found')
      throw new KubeError(`the Secret ${namespace}/${name} cannot be read`, there);
    const secret = there.ok
      ? (there.body as { readonly metadata: object; readonly data?: Readonly<Record<string, string>> })
      : null;
    const known = secret === null ? null : issuedOf(secret.data ?? {});
    if (known !== null && isUsable(known, options)) return known;
    const made = await issue(hosts);
    const issued = { ...made, authority: [made.authority, ...unended(known?.authority ?? '', options.now())].join('') };
    const encoded = (text: string): string => Buffer.from(text).toString('base64');
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { ...secret?.metadata, namespace, name },
      data: {
        'tls.key': encoded(issued.key),
        'tls.crt': encoded(issued.certificate),
        'ca.crt': encoded(issued.authority),
      },
    };
    const answer =
      secret === null
        ? await api.request({ method: 'POST', path: secrets, body })
        : await api.request({ method: 'PUT', path, body });
    if (answer.ok) return issued;
    // Another replica was faster: its certificate is as good.
    if (!['conflict', 'already-exists', 'not-found'].includes(answer.code))
      throw new KubeError(`the Secret ${namespace}/${name} cannot be written`, answer);
  }
  throw new Error(`the Secret ${namespace}/${name} is changed all the time`);
}

function issuedOf(data: Readonly<Record<string, string>>): Issued | null {
  const text = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString('utf8');
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
