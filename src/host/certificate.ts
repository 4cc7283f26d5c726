import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** A key and its certificate, both PEM. */
export interface Certificate {
  readonly key: string;
  readonly certificate: string;
}

export interface CertificateAuthority extends Certificate {
  /** A server certificate for these names and addresses. */
  server(names: readonly string[]): Certificate;
  /** A client certificate; Kubernetes takes the common name for the user and organisations for groups. */
  client(user: string, groups?: readonly string[]): Certificate;
}

/** A certificate authority of its own, made in memory: what it signs is valid for `days` from now on. No files, no openssl; its key is never shown to anybody but the caller. */
export function certificateAuthority(name: string, days: number): CertificateAuthority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = distinguishedName(name, []);
  const extensions = [
    extension('2.5.29.19', true, sequence(TRUE)),
    extension('2.5.29.15', true, bitString(Buffer.from([0x06]), 1)),
  ];
  const own = issue({ days, issuer, subject: issuer, publicKey, signer: privateKey, extensions });
  const signed = (subject: Buffer, more: readonly Buffer[]): Certificate => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return {
      key: pem(pair.privateKey),
      certificate: issue({ days, issuer, subject, publicKey: pair.publicKey, signer: privateKey, extensions: more }),
    };
  };
  return {
    key: pem(privateKey),
    certificate: own,
    server: (names) =>
      signed(distinguishedName(names[0] ?? '', []), [
        usage(SERVER_AUTH),
        extension('2.5.29.17', false, sequence(...names.map(generalName))),
      ]),
    client: (user, groups = []) => signed(distinguishedName(user, groups), [usage(CLIENT_AUTH)]),
  };
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

// --- X.509 (RFC 5280) in DER (X.690) ------------------------------------------------------------------------------

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const DAY_MS = 86_400_000;

function issue(parts: {
  days: number;
  issuer: Buffer;
  subject: Buffer;
  publicKey: KeyObject;
  signer: KeyObject;
  extensions: readonly Buffer[];
}): string {
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2'));
  const validity = sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + parts.days * DAY_MS));
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    algorithm,
    parts.issuer,
    validity,
    parts.subject,
    parts.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...parts.extensions)),
  );
  const der = sequence(body, algorithm, bitString(sign('sha256', body, parts.signer), 0));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

const TRUE = Buffer.from([0x01, 0x01, 0xff]);

function tagged(tag: number, content: Buffer): Buffer {
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const length = Buffer.from(content.length.toString(16).padStart(content.length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 + length.length]), length, content]);
}

function sequence(...items: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(items));
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128))
    digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

function utcTime(ms: number): Buffer {
  return tagged(0x17, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`));
}

function bitString(content: Buffer, unusedBits: number): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([unusedBits]), content]));
}

function distinguishedName(commonName: string, organisations: readonly string[]): Buffer {
  const attribute = (type: string, value: string): Buffer =>
    tagged(0x31, sequence(objectId(type), tagged(0x0c, Buffer.from(value))));
  return sequence(
    ...organisations.map((organisation) => attribute('2.5.4.10', organisation)),
    attribute('2.5.4.3', commonName),
  );
}

function extension(type: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectId(type), ...(critical ? [TRUE] : []), tagged(0x04, value));
}

function usage(purpose: string): Buffer {
  return extension('2.5.29.37', false, sequence(objectId(purpose)));
}

function generalName(name: string): Buffer {
  const address = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(name);
  if (address !== null) return tagged(0x87, Buffer.from(address.slice(1).map(Number)));
  return tagged(0x82, Buffer.from(name));
}
