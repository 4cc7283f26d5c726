import { request } from 'node:https';
import { test } from 'tap';
import { fixedTls } from '../../src/http/tls.js';
import { certificateAuthority, type Certificate } from '../harness/certificate.js';
import { node } from './objects.js';
import { start } from './scheduler.js';

const ca = await certificateAuthority();
const server = await ca.server(['127.0.0.1']);

function get(port: number, client: Certificate | null): Promise<number> {
  return new Promise((resolve, reject) => {
    const certificate = client === null ? {} : { cert: client.certificate, key: client.key };
    request(
      { host: '127.0.0.1', port, path: '/healthz', ca: ca.certificate, agent: false, ...certificate },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    )
      .on('error', reject)
      .end();
  });
}

test('the extender serves HTTPS when it has a certificate', async (t) => {
  const { extender } = await start(t, [node('n', [16])], {
    tls: fixedTls(server),
  });
  t.equal(await get(extender.port, null), 200);
  await t.rejects(fetch(`http://127.0.0.1:${extender.port}/healthz`));
});

test('with a client authority, the extender accepts only clients with a certificate of this authority', async (t) => {
  const { extender } = await start(t, [node('n', [16])], {
    tls: fixedTls({ ...server, clientAuthority: ca.certificate }),
  });
  t.equal(await get(extender.port, await ca.client('system:kube-scheduler')), 200);
  await t.rejects(get(extender.port, null));
  const other = await certificateAuthority('other');
  await t.rejects(get(extender.port, await other.client('system:kube-scheduler')));
});
