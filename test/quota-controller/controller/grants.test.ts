import { test } from 'tap';
import { eventually } from '../../harness/eventually.js';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { QuotaCluster } from '../cluster.js';

const KEY = 'cash/limits.cpu';

test('grants in the spec of a group are given, and kubectl shows granted, used, left and next', async (t) => {
  const on = await QuotaCluster.start(2);
  t.teardown(() => on.stop());
  const from = new Date(Date.now() - 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z');
  const made = await on.client.request({
    method: 'POST',
    path: GROUPS_PATH,
    body: {
      metadata: { name: 'team' },
      spec: {
        hard: { 'limits.cpu': 10, [KEY]: 0 },
        grants: [{ name: 'weekly', key: KEY, amount: 20, persons: 5, from, every: '7d', carryOver: 10 }],
      },
    },
  });
  t.match(made, { ok: true });
  const next = new Date(Date.parse(from) + 7 * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z');
  await eventually(
    () => (on.statusOf('team')['budget'] as { readonly left?: string } | undefined)?.left === '100',
    'the grant',
  );
  t.match(on.statusOf('team'), {
    hard: { [KEY]: '100' },
    budget: { granted: '100', used: '0', left: '100', next },
    budgets: [{ key: KEY, granted: '100', next }],
    grants: [{ name: 'weekly', given: from }],
  });
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });

  await on.updateGroup('team', { 'limits.cpu': 10, [KEY]: 7 });
  await eventually(
    () => (on.statusOf('team')['hard'] as Record<string, string>)[KEY] === '107',
    'the own budget beside it',
  );
  await on.updateGroup('team', { 'limits.cpu': 11, [KEY]: 7 }, { grants: [] });
  await eventually(
    () => (on.statusOf('team')['budget'] as { readonly next?: string } | undefined)?.next === undefined,
    'no next time',
  );
  t.match(on.statusOf('team'), { hard: { [KEY]: '107', 'limits.cpu': '11' } }, 'what was given stays');
  const wrong = await on.updateGroup(
    'team',
    { 'limits.cpu': 11, [KEY]: 7 },
    { grants: [{ name: 'x', key: 'cash/pods', amount: 1 }] },
  );
  t.match(wrong, { ok: false, message: /grant x: the group has no budget cash\/pods in hard/ });
});

test('a grant that the parent cannot pay gives a condition and an event, and is given when the parent can pay', async (t) => {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  await on.createGroup('company', { 'limits.cpu': 10, [KEY]: 5 });
  await on.createGroup('team', { 'limits.cpu': 1, [KEY]: 0 }, 'company');
  await on.updateGroup('team', { 'limits.cpu': 1, [KEY]: 0 }, { grants: [{ name: 'extra', key: KEY, amount: 8 }] });
  await eventually(() => on.condition('team', 'GrantRefused') === 'True', 'the condition');
  await eventually(() => on.server.all('events').some(({ reason }) => reason === 'GrantRefused'), 'the event');
  t.match(on.statusOf('team')['grants'], [{ name: 'extra', refused: /exceeded quota: company/ }]);
});

test('budget levels that time alone reaches give events', async (t) => {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  // A thousand cores use 80, 90 and 100 percent of half a core-hour within two seconds.
  await on.createGroup('team', { 'limits.cpu': 1000, [KEY]: '0.5' });
  t.match(await on.deploy('web', 'team', 1, 1000), { ok: true });
  const owner = on.server.read('deployments', 'default', 'web')?.metadata.uid;
  on.server.seed('pods', {
    metadata: {
      name: 'web-0',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: owner, controller: true }],
    },
    spec: { nodeName: 'n', containers: [{ name: 'main', resources: { limits: { cpu: 1000 } } }] },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z') },
      ],
    },
  });
  const told = (): readonly unknown[] =>
    on.server.all('events').flatMap(({ reason }) => (String(reason).startsWith('Cash') ? [reason] : []));
  await eventually(() => told().includes('Cash100Percent'), 'the last level, without the refresh of five minutes');
  t.equal(on.condition('team', 'CashLow'), 'True');
  t.match(await on.scale('web', 2), { ok: false, message: /CashExhausted|QuotaExceeded/ });
});
