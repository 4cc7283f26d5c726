import { test } from 'tap';
import { systemClock, type Clock } from '../../../src/host/clock.js';
import { createEngine } from '../../../src/quota/index.js';
import { leaderOf, ledgerTime, resetClock } from '../../../src/quota-controller/clock/clock-reset.js';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import { LedgerObjects } from '../../../src/quota-controller/store/ledger-objects.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const DAY = 86_400_000;

/** A node's clock with this error. */
function off(byMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + byMs };
}

test('replicas with different clocks agree about reservations', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ clock: off(0) });
  await on.join({ clock: off(61_000) });
  await on.join({ clock: off(-10 * 365 * DAY) });
  await on.createGroup('team', { 'limits.cpu': 10 });
  // The replicas review in turn. No object is ever created, so that only reservations use quota.
  const review = (name: string) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: name,
      kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      subResource: '',
      name,
      namespace: 'default',
      operation: 'CREATE',
      dryRun: false,
      userInfo: { username: 'tester' },
      object: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace: 'default', uid: `uid-${name}`, labels: { 'biz.group.resource.quota': 'team' } },
        spec: { replicas: 1, template: { spec: { containers: [{ name: 'm', resources: { limits: { cpu: 4 } } }] } } },
      },
      oldObject: null,
    },
  });
  let admitted = 0;
  for (let round = 0; round < 3; round++)
    for (const [index, service] of on.services.entries()) {
      const name = `web-${round}-${index}`;
      if ((await on.askOne(service, '/workloads', review(name))).response.allowed) admitted++;
    }
  t.equal(admitted, 2, 'eight of ten cores');
});

test('an API server whose clock leaps by ten years causes no loss of grants and no freeze, but an event', async (t) => {
  let leapMs = 0;
  const on = await QuotaCluster.start(1, { now: () => Date.now() + leapMs });
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 10, 'cash/limits.cpu': 0 });
  const granted = (): string => String((on.statusOf('team')['budget'] as { left?: string } | undefined)?.left);
  await on.updateGroup(
    'team',
    { 'limits.cpu': 10, 'cash/limits.cpu': 0 },
    { grants: [{ name: 'weekly', key: 'cash/limits.cpu', amount: 40, every: '7d', mode: 'topup' }] },
  );
  await eventually(() => granted() === '40', 'the grant');
  leapMs = 3650 * DAY;
  await eventually(() => on.server.all('events').some(({ reason }) => reason === 'ClockLeapRefused'), 'the event');
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  await eventually(() => on.used('team') === '1', 'the ledger to follow');
  t.equal(granted(), '40', 'no week has passed');
  leapMs = 0;
  t.match(await on.scale('web', 2), { ok: true });
  await eventually(() => on.used('team') === '2', 'the ledger to follow');
});

test('a ledger that is ten years ahead is reset by a command while no replica runs, and then continues', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  const objects = new LedgerObjects(on.client, systemClock);
  const first = await on.join();
  const spec = { hard: { 'limits.cpu': 10, 'cash/limits.cpu': 100 } };
  const grants = [{ name: 'weekly', key: 'cash/limits.cpu', amount: 40, every: '7d' }];
  await on.client.request({
    method: 'POST',
    path: GROUPS_PATH,
    body: { metadata: { name: 'team' }, spec: { ...spec, grants } },
  });
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  const left = (): unknown => (on.statusOf('team')['budget'] as { readonly left?: string } | undefined)?.left;
  await eventually(() => on.used('team') === '1' && left() === '40', 'the ledger to follow');
  t.equal((await leaderOf(on.client, 'kube-system', Date.now()))?.identity, 'replica-0');
  await on.leave(first);
  t.equal(await leaderOf(on.client, 'kube-system', Date.now()), null);

  // The damage done by an earlier version on a node that was ten years ahead: weekly grants were executed.
  const future = Date.now() + 3650 * DAY;
  const engine = await createEngine({
    store: new KubeStore({ api: on.client, clock: systemClock }),
    clock: () => future,
  });
  await engine.execute({ type: 'tick' });
  t.ok((await ledgerTime(on.client, systemClock)) > Date.now() + 3000 * DAY);
  await engine.close();

  const { ledgers } = await resetClock(on.client, systemClock, Date.now(), 60_000);
  t.ok(ledgers >= 1);
  t.ok((await ledgerTime(on.client, systemClock)) <= Date.now());
  t.equal((await objects.get('team'))?.ledger.pending, null);
  await on.join();
  t.match(await on.deploy('more', 'team', 9, 1), { ok: true });
  await eventually(() => on.used('team') === '10' && left() === '40', 'the grant of this week, and the workloads');
  const next = Date.parse((on.statusOf('team')['budget'] as { readonly next: string }).next);
  t.ok(next > Date.now() && next <= Date.now() + 7 * DAY);
});
