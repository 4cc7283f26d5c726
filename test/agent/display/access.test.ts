import type { X509Certificate } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { test } from 'tap';
import { CertificateFiles } from '../../../src/http/certificate-files.js';
import { namesLoopback } from '../../../src/http/loopback.js';
import { SelfSigned } from '../../../src/http/self-signed.js';
import { TokenAccess, type AccessDecision } from '../../../src/http/token-access.js';
import { silentLog } from '../../../src/host/log.js';
import { certificateAuthority, type Certificate } from '../../harness/certificate.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';
import { gpu, node, served, viewOf } from './fixture.js';

const VIEW = viewOf(() => node({ gpus: [gpu(0)] }));

test('with token review, data needs a cluster token with read access, and the page and the probes need none', async (t) => {
  const clock = new ManualClock();
  const asked: string[] = [];
  const verdicts: Record<string, AccessDecision> = {
    good: { kind: 'allowed' },
    other: { kind: 'forbidden', user: 'system:serviceaccount:a:b' },
    away: { kind: 'unavailable', reason: 'down' },
  };
  const access = new TokenAccess(async (token, path) => {
    asked.push(`${token} ${path}`);
    return verdicts[token] ?? { kind: 'unknown' };
  }, clock);
  const { get } = await served(t, VIEW, { access });
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  for (const path of ['/', '/page/main.js', '/healthz', '/readyz']) t.equal((await get(path)).status, 200, path);
  for (const path of [
    '/graph',
    '/usage',
    '/version',
    '/metrics',
    '/metric',
    '/api/node',
    '/api/events',
    '/api/stream',
    '/api/allocations/x',
  ]) {
    const { status, headers } = await get(path);
    t.equal(status, 401, path);
    t.equal(headers.get('www-authenticate'), 'Bearer');
  }
  t.same(asked, [], 'a request without a token causes no review');
  t.equal((await get('/metrics', as('good'))).status, 200);
  t.equal((await get('/metrics', as('bad'))).status, 401);
  t.match(await get('/metrics', as('other')), {
    status: 403,
    text: /system:serviceaccount:a:b may not get the non-resource URL \/metrics/,
  });
  t.match(await get('/metrics', as('away')), { status: 503, text: /down/ });
  for (let times = 0; times < 5; times++) await get('/metrics', as('good'));
  t.same(
    asked,
    ['good /metrics', 'bad /metrics', 'other /metrics', 'away /metrics'],
    'answers are cached by token and path',
  );
  verdicts.good = { kind: 'unknown' };
  clock.advance(60_001);
  t.equal((await get('/metrics', as('good'))).status, 401, 'cached answers expire');
  t.equal((await get('/metrics', { headers: { authorization: 'Basic Z29vZA==' } })).status, 401);
});

test('a flood of invalid tokens is not passed on to the cluster, and known readers are still served', async (t) => {
  const clock = new ManualClock();
  let underWay = 0;
  const waiting: (() => void)[] = [];
  const access = new TokenAccess(async (token) => {
    if (token === 'good') return { kind: 'allowed' };
    underWay += 1;
    await new Promise<void>((resolve) => waiting.push(resolve));
    underWay -= 1;
    return { kind: 'unknown' };
  }, clock);
  const check = (token: string) => access.check(`Bearer ${token}`, '/metrics');
  t.same(await check('good'), { kind: 'allowed' });
  const flood = Array.from({ length: 5_000 }, (_, index) => check(`made-up-${index}`));
  t.equal(underWay, 16);
  t.match(await flood.at(-1), { kind: 'unavailable', reason: /too many/ });
  clock.advance(60_001);
  t.same(await check('good'), { kind: 'allowed' }, 'a known token is reviewed again during the flood');
  waiting.forEach((go) => go());
  await Promise.all(flood);
  t.equal(underWay, 0);
  const more = check('made-up');
  t.equal(underWay, 1, 'a new token is reviewed after the flood');
  waiting.at(-1)?.();
  t.same(await more, { kind: 'unknown' });
});

test('an agent without certificate files serves HTTPS with its own certificate for its names and addresses', async (t) => {
  const clock = new ManualClock();
  const tls = new SelfSigned({ names: ['node1'], clock, log: silentLog() });
  const { server } = await served(t, VIEW, { certificate: tls });
  const peer = (): Promise<X509Certificate> =>
    new Promise((resolve, reject) => {
      const socket = connectTls({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        const shown = socket.getPeerX509Certificate();
        socket.destroy();
        if (shown === undefined) reject(new Error('no certificate'));
        else resolve(shown);
      });
      socket.on('error', reject);
    });
  const first = await peer();
  for (const name of ['node1', 'localhost']) t.equal(first.checkHost(name), name);
  t.equal(first.checkIP('127.0.0.1'), '127.0.0.1');
  clock.advance(61 * 86_400_000);
  await eventually(async () => (await peer()).fingerprint256 !== first.fingerprint256, 'the renewal');
});

test('the server on loopback answers requests for loopback names only, so that no foreign web page reads the node', async (t) => {
  t.same(['localhost', 'LOCALHOST:5678', '127.0.0.1:5678', '[::1]:5678', undefined].map(namesLoopback), [
    true,
    true,
    true,
    true,
    true,
  ]);
  t.same(['evil.example', 'localhost.evil.example:5678', ''].map(namesLoopback), [false, false, false]);
  const { server } = await served(t, VIEW);
  const { connect } = await import('node:net');
  const socket = connect(server.port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write('GET /api/node HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n');
  await eventually(() => answer !== '');
  t.match(answer, /^HTTP\/1.1 421 /);
});

test('every answer carries the content security policy that limits the page to its own scripts', async (t) => {
  const { get } = await served(t, VIEW);
  for (const path of ['/', '/metrics', '/nothing', '/page/main.js']) {
    const { headers } = await get(path);
    t.match(
      headers.get('content-security-policy'),
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'/,
      path,
    );
    t.notMatch(headers.get('content-security-policy'), /unsafe/);
    t.equal(headers.get('x-content-type-options'), 'nosniff');
  }
  const { headers } = await get('/page/main.js');
  t.equal((await get('/page/main.js', { headers: { 'if-none-match': headers.get('etag') ?? '' } })).status, 304);
});

const ca = await certificateAuthority();

/** The common name of the certificate that a server presents. */
function shownName(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path: '/healthz', ca: ca.certificate, agent: false },
      (response) => {
        response.resume();
        const { socket } = response as unknown as { socket: { getPeerCertificate(): { subject: { CN: string } } } };
        resolve(socket.getPeerCertificate().subject.CN);
      },
    );
    outgoing.on('error', reject).end();
  });
}

test('the server uses the certificate in the files, and reloads them when they are renewed', async (t) => {
  const directory = await scratchDirectory(t);
  const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  const place = async (pair: Certificate): Promise<void> => {
    for (const [file, text] of [
      [certFile, pair.certificate],
      [keyFile, pair.key],
    ] as const) {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    }
  };
  await place(await ca.server(['127.0.0.1']));
  const clock = new ManualClock();
  const { server } = await served(t, VIEW, {
    certificate: new CertificateFiles({ certFile, keyFile, clock, log: silentLog() }),
  });
  t.equal(await shownName(server.port), '127.0.0.1');
  await t.rejects(fetch(`http://127.0.0.1:${server.port}/healthz`), 'and no plain HTTP');
  await writeFile(certFile, (await ca.server(['wrong'])).certificate);
  clock.advance(10_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(await shownName(server.port), '127.0.0.1', 'a certificate without its key is not loaded');
  await place(await ca.server(['renewed', '127.0.0.1']));
  await eventually(async () => {
    clock.advance(10_000);
    return (await shownName(server.port)) === 'renewed';
  });
});

test('files that are not certificates are reported at the start', async (t) => {
  const directory = await scratchDirectory(t);
  const files = new CertificateFiles({
    certFile: join(directory, 'none.crt'),
    keyFile: join(directory, 'none.key'),
    clock: new ManualClock(),
    log: silentLog(),
  });
  await t.rejects(files.read(), { code: 'ENOENT' });
  files.follow(() => undefined);
  files.stop();
});
