import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'tap';
import { WebhookMetrics } from '../../src/claim-webhook/webhook-metrics.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { ANY_CALLER } from '../../src/kube/admission/review-callers.js';
import { WebhookServer } from '../../src/kube/admission/webhook-server.js';
import { cases } from '../cases.js';
import { certificateAuthority } from '../harness/certificate.js';
import { timeLimit } from '../harness/time-factor.js';

/** As many requests as an API server works on at once by default (`--max-requests-inflight` and its mutating twin). */
const CALLS = 600;

const REVIEW = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', resource: { group: '', resource: 'pods' }, object: {} },
});

test('all reviews of an API server that works to capacity are answered, each on its own connection', async (t) => {
  const server = new WebhookServer({
    address: '127.0.0.1',
    port: 0,
    probePort: null,
    certificate: { ...(await (await certificateAuthority()).server(['127.0.0.1'])), authority: '' },
    callers: ANY_CALLER,
    reviews: {
      '/pods': async () => {
        await sleep(1_000);
        return { allowed: true };
      },
    },
    notReady: () => null,
    decided: () => undefined,
    metrics: new WebhookMetrics().page,
    register: async () => undefined,
    log: silentLog(),
    clock: systemClock,
  });
  await server.start();
  // The API server keeps 25 connections, and opens another for each further call.
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true, maxFreeSockets: 25 });
  t.teardown(async () => {
    agent.destroy();
    await server.stop();
  });
  const call = (): Promise<number | string | undefined> =>
    new Promise((resolve) => {
      const to = { host: '127.0.0.1', port: server.port, path: '/pods', method: 'POST', agent };
      const outgoing = request({ ...to, timeout: timeLimit(10_000) }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      outgoing.on('error', (error) => resolve(error.message));
      outgoing.end(REVIEW);
    });
  for (const time of cases(['first'], ['first', 'second', 'third'])) {
    const answers = await Promise.all(Array.from({ length: CALLS }, call));
    const failed = answers.filter((answer) => answer !== 200);
    t.same([...new Set(failed)], [], `the ${time} ${CALLS} calls: ${failed.length} failed`);
  }
});
