import { KeyObject, type webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import type { X509Certificate } from '@peculiar/x509';

/** A key and its certificate, both PEM. */
export interface Certificate {
  readonly key: string;
  readonly certificate: string;
}

export interface CertificateAuthority extends Certificate {
  /** A server certificate for these names and addresses. */
  server(names: readonly string[]): Promise<Certificate>;
  /** A client certificate; Kubernetes uses the common name as user and the organisations as groups. */
  client(user: string, groups?: readonly string[]): Promise<Certificate>;
}

const DAY_MS = 86_400_000;

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;

/**
 * A certificate authority in memory. Its certificates are valid from a day ago, for clocks that are late, until `days`
 * from now. It uses neither files nor openssl, and only the caller has its key.
 */
export async function certificateAuthority(name: string, days: number): Promise<CertificateAuthority> {
  // Loaded only here, so that only programs that create certificates load it.
  const x509 = await import('./x509.js');
  const { subtle } = globalThis.crypto;
  const newKeys = () => subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const [notBefore, notAfter] = [new Date(Date.now() - DAY_MS), new Date(Date.now() + days * DAY_MS)];
  const validity = { notBefore, notAfter, signingAlgorithm: SIGNING_ALGORITHM };
  const keys = await newKeys();
  const issuer = new x509.Name([{ CN: [name] }]);
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    name: issuer,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });
  const signed = async (subject: object[], usage: string, names: readonly string[]): Promise<Certificate> => {
    const pair = await newKeys();
    const alternatives = names.map((value) => ({
      type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
      value,
    }));
    const certificate = await x509.X509CertificateGenerator.create({
      ...validity,
      subject: new x509.Name(subject as ConstructorParameters<typeof x509.Name>[0]),
      issuer,
      publicKey: pair.publicKey,
      signingKey: keys.privateKey,
      extensions: [
        new x509.ExtendedKeyUsageExtension([usage]),
        ...(alternatives.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternatives)]),
      ],
    });
    return { key: pem(pair.privateKey), certificate: textOf(certificate) };
  };
  return {
    key: pem(keys.privateKey),
    certificate: textOf(own),
    server: (names) => signed([{ CN: [names[0] ?? ''] }], x509.ExtendedKeyUsage.serverAuth, names),
    client: (user, groups = []) =>
      signed([...groups.map((group) => ({ O: [group] })), { CN: [user] }], x509.ExtendedKeyUsage.clientAuth, []),
  };
}

function pem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Ends with a line end, so that texts can be joined into bundles. */
function textOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}
