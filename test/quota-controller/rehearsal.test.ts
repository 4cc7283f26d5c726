/** Synthetic reviews before the first real one. */
import { test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { issue } from '../../src/kube/admission/webhook-identity.js';
import { LEDGERS_PATH } from '../../src/kube/quota/names.js';
import { QuotaMetrics } from '../../src/quota-controller/quota-metrics.js';
import { rehearse } from '../../src/quota-controller/rehearsal/rehearsal.js';
import { servedKinds } from '../../src/quota-controller/kinds.js';
import { KNOWN_KINDS } from '../../src/quota/index.js';
import { eventually } from '../harness/eventually.js';
import { QuotaCluster } from './cluster.js';
import { clientTo, quotaServer } from './setting.js';

test('a service is ready only after it has rehearsed reviews, of which the cluster keeps nothing', async (t) => {
  const quota = await QuotaCluster.start(0);
  t.teardown(() => quota.stop());
  const reasons = new Set<string>();
  const joined = quota.join({ rehearsedReviews: 60, reasons });
  const service = await joined;
  t.ok(reasons.has('reviews are rehearsed, so that the first ones are fast'), [...reasons].join('; '));
  t.equal(service.notReady, null);
  const ledgers = await quota.client.request({ method: 'GET', path: LEDGERS_PATH });
  t.match(ledgers, { ok: true, body: { items: [] } });
  await quota.createGroup('team', { 'limits.cpu': 2 });
  t.ok((await quota.deploy('web', 'team', 1, 1)).ok);
  await eventually(() => quota.used('team') === '1', 'a real workload to be charged');
});

test('a rehearsal counts every review of its number, ends early when it is told, and fails without harm', async (t) => {
  const server = await quotaServer();
  const api = clientTo(server.url);
  t.teardown(async () => {
    api.close();
    await server.stop();
  });
  const kinds = await servedKinds(api, KNOWN_KINDS);
  const certificate = await issue(['quota.example.com']);
  const told: { readonly fields: object; readonly text: string }[] = [];
  const note = (fields: object, text: string): void => void told.push({ fields, text });
  const log = { ...silentLog(), info: note, warn: note };
  const run = async (more: { readonly signal?: AbortSignal; readonly authority?: string }): Promise<unknown> => {
    await rehearse({
      certificate: { ...certificate, authority: more.authority ?? certificate.authority },
      evaluation: () => ({}),
      kinds: () => kinds,
      metrics: new QuotaMetrics().page,
      log: log,
      clock: systemClock,
      reviews: 30,
      signal: more.signal ?? new AbortController().signal,
    });
    return told.pop();
  };
  t.match(await run({}), { fields: { reviews: 30 }, text: 'rehearsed reviews' });
  t.match(await run({ signal: AbortSignal.abort() }), { fields: { reviews: 0 } });
  const { authority } = await issue(['other.example.com']);
  t.match(await run({ authority }), { text: /failed; the first reviews will be slow/ });
});
