import { X509Certificate, createPrivateKey } from 'node:crypto';
import { connect, createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { test } from 'tap';
import { certificateAuthority } from '../../src/host/certificate.js';

const DAY_MS = 86_400_000;

test('a server certificate lists IPv4 and IPv6 addresses as addresses and names as names', async (t) => {
  const authority = await certificateAuthority('ca', 7);
  const { certificate, key } = await authority.server(['svc.ns.svc', '10.0.0.1', '::1', 'fd00::a:1']);
  const read = new X509Certificate(certificate);
  t.equal(
    read.subjectAltName,
    'DNS:svc.ns.svc, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:FD00:0:0:0:0:0:A:1',
  );
  for (const address of ['10.0.0.1', '::1', 'fd00::a:1']) t.equal(read.checkIP(address), address);
  t.equal(read.checkHost('svc.ns.svc'), 'svc.ns.svc');
  t.equal(read.checkHost('other.ns.svc'), undefined);
  t.match(certificate, /-----END CERTIFICATE-----\n$/, 'the certificate can be concatenated with others');
  t.ok(read.checkPrivateKey(createPrivateKey(key)));
  t.ok(read.checkIssued(new X509Certificate(authority.certificate)));
  t.ok(read.verify(new X509Certificate(authority.certificate).publicKey));
});

test('a certificate is valid from one day ago, for late clocks, until its days are over', async (t) => {
  const before = Date.now();
  const authority = await certificateAuthority('ca', 7);
  for (const certificate of [authority.certificate, (await authority.server(['a'])).certificate]) {
    const { validFrom, validTo } = new X509Certificate(certificate);
    t.ok(Math.abs(Date.parse(validFrom) - (before - DAY_MS)) < 60_000, validFrom);
    t.ok(Math.abs(Date.parse(validTo) - (before + 7 * DAY_MS)) < 60_000, validTo);
  }
});

test('only the authority may sign, and a client certificate names user and groups', async (t) => {
  const authority = await certificateAuthority('ca', 1);
  t.equal(new X509Certificate(authority.certificate).ca, true);
  const { certificate } = await authority.client('system:kube-scheduler', ['system:masters', 'team']);
  const read = new X509Certificate(certificate);
  t.equal(read.ca, false);
  t.match(read.subject.split('\n').sort(), ['CN=system:kube-scheduler', 'O=system:masters', 'O=team']);
  t.same(read.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  t.same(new X509Certificate((await authority.server(['a'])).certificate).keyUsage, ['1.3.6.1.5.5.7.3.1']);
});

test('a client that trusts the authority reaches a server by its IPv6 address', async (t) => {
  const authority = await certificateAuthority('ca', 1);
  const { certificate, key } = await authority.server(['::1']);
  const server = createServer({ cert: certificate, key }, (socket) => socket.end('hello'));
  const listening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(0, '::1', () => resolve(true));
  });
  if (!listening) {
    t.comment('this machine has no IPv6');
    return;
  }
  t.teardown(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const said = await new Promise<string>((resolve, reject) => {
    let text = '';
    connect({ host: '::1', port, ca: authority.certificate })
      .on('data', (chunk: Buffer) => (text += chunk.toString()))
      .on('end', () => resolve(text))
      .on('error', reject);
  });
  t.equal(said, 'hello');
});
