import { Agent, request } from 'node:https';
import { test, type Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { WebhookServer } from '../../src/kube/admission/webhook-server.js';
import { ANY_CALLER } from '../../src/kube/admission/review-callers.js';
import { tokenReaders } from '../../src/kube/token-review.js';
import { WebhookMetrics } from '../../src/claim-webhook/webhook-metrics.js';
import { certificateAuthority } from '../harness/certificate.js';
import { apiServer, clientOf } from './setting.js';

const REVIEW = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', resource: { group: '', resource: 'pods' }, object: {} },
});

/** Webhooks at an API server that knows the tokens of a reader and of another account. */
async function webhooks(t: Test, isReviewed: boolean) {
  const server = await apiServer(t, {
    reviews: {
      tokens: new Map([
        ['reader-token', 'reader'],
        ['stranger-token', 'stranger'],
      ]),
      allows: (user) => user === 'reader',
    },
  });
  const made = new WebhookServer({
    address: '127.0.0.1',
    port: 0,
    probePort: null,
    certificate: { ...(await (await certificateAuthority()).server(['127.0.0.1'])), authority: '' },
    callers: ANY_CALLER,
    readers: tokenReaders(isReviewed, clientOf(t, server.url), systemClock),
    reviews: { '/pods': async () => ({ allowed: true }) },
    notReady: () => null,
    decided: () => undefined,
    metrics: new WebhookMetrics().page,
    register: async () => undefined,
    log: silentLog(),
    clock: systemClock,
  });
  await made.start();
  const agent = new Agent({ rejectUnauthorized: false });
  t.teardown(async () => {
    agent.destroy();
    await made.stop();
  });
  return (path: string, token: string | null, body = ''): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      const method = body === '' ? 'GET' : 'POST';
      request({ host: '127.0.0.1', port: made.port, path, method, headers, agent }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .on('error', reject)
        .end(body);
    });
}

test('with token review the metrics need a token that may get them; reviews and probes need none', async (t) => {
  const call = await webhooks(t, true);
  t.equal(await call('/metrics', null), 401);
  t.equal(await call('/metrics', 'made-up'), 401);
  t.equal(await call('/metrics', 'stranger-token'), 403);
  t.equal(await call('/metrics', 'reader-token'), 200);
  t.equal(await call('/pods', null, REVIEW), 200);
  t.equal(await call('/healthz', null), 200);
});

test('without token review everybody who reaches the port reads the metrics', async (t) => {
  const call = await webhooks(t, false);
  t.equal(await call('/metrics', null), 200);
});
