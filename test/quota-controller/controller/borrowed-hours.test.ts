/** Hours beyond the guaranteed part of a group, by which borrowers are weighed. */
import { test } from 'tap';
import { GROUPS_PATH, POLICIES_PATH } from '../../../src/kube/quota/names.js';
import type { BorrowedHours } from '../../../src/kube/quota/group-object.js';
import { BorrowedHoursMeter } from '../../../src/quota-controller/controller/borrowed-hours.js';
import { readPolicy } from '../../../src/quota-controller/policy/policy-object.js';
import { Quota } from '../../../src/quota/index.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const HOUR = 3_600_000;

/** A group with a guaranteed core and a pod of three, at a time. */
function statusAt(now: number): NonNullable<ReturnType<Quota['status']>> {
  const quota = new Quota();
  const hard = { 'limits.cpu': 1, 'cash/limits.cpu': 1_000 };
  quota.execute({ type: 'createGroup', name: 'g', hard }, 0);
  const needs = { requests: {}, limits: { cpu: 3_000n } };
  quota.execute(
    { type: 'podStarted', pod: 'p', workload: { kind: 'Pod', name: 'p' }, group: 'g', since: 0, ...needs },
    0,
  );
  const status = quota.status('g', now);
  if (status === null) throw new Error('no group');
  return status;
}

test('hours beyond the guaranteed part count, and halve in each half-life', (t) => {
  const meter = new BorrowedHoursMeter();
  const cores = (): number => Math.round(meter.of('g')?.get('limits.cpu') ?? NaN) / 1000;
  const count = (hours: number, halfLife: number): void =>
    meter.count(statusAt(hours * HOUR), undefined, halfLife * HOUR, hours * HOUR);
  t.equal(meter.of('g'), undefined);
  count(0, 1e9);
  count(4, 1e9);
  t.equal(cores(), 8, 'three cores of which one is its own, for four hours');
  const idle = statusAt(4 * HOUR);
  meter.count(idle, undefined, 2 * HOUR, 8 * HOUR);
  t.equal(cores(), 2, 'no pod ran for two half-lives');
  const often = new BorrowedHoursMeter();
  for (let hours = 0; hours <= 4; hours += 0.25) often.count(statusAt(hours * HOUR), undefined, 2 * HOUR, hours * HOUR);
  const once = new BorrowedHoursMeter();
  for (const hours of [0, 4]) once.count(statusAt(hours * HOUR), undefined, 2 * HOUR, hours * HOUR);
  const [one, other] = [often, once].map((each) => Math.round(each.of('g')?.get('limits.cpu') ?? 0));
  t.equal(one, other, 'how often it is counted does not matter');
  t.equal(other, Math.round((2_000 * 2 * (1 - 2 ** -2)) / Math.LN2));
  t.end();
});

test('another leader continues from the status, and hours that go back count nothing', (t) => {
  const first = new BorrowedHoursMeter();
  for (const hours of [0, 1]) first.count(statusAt(hours * HOUR), undefined, 5 * HOUR, hours * HOUR);
  const written = first.written('g') as BorrowedHours;
  first.count(statusAt(3 * HOUR), undefined, 5 * HOUR, 3 * HOUR);
  const second = new BorrowedHoursMeter();
  second.count(statusAt(3 * HOUR), written, 5 * HOUR, 3 * HOUR);
  t.same(second.written('g')?.counted, first.written('g')?.counted);
  t.equal(Math.round(second.of('g')?.get('limits.cpu') ?? 0), Math.round(first.of('g')?.get('limits.cpu') ?? 1));
  const before = second.of('g')?.get('limits.cpu') ?? 0;
  second.count(statusAt(0), undefined, 1e12, 3 * HOUR);
  t.ok(Math.abs((second.of('g')?.get('limits.cpu') ?? 0) - before) < 1e-6, 'a group that was created again');
  second.forget('g');
  t.equal(second.written('g'), undefined);
  t.end();
});

test('the policy has the half-life, and says what is wrong with it', (t) => {
  const read = (spec: object): ReturnType<typeof readPolicy> => readPolicy({ metadata: { name: 'default' }, spec });
  t.equal(read({})?.policy.borrowedHoursHalfLifeMs, null);
  t.equal(read({ borrowedHours: { halfLifeHours: 1.5 } })?.policy.borrowedHoursHalfLifeMs, 1.5 * HOUR);
  const wrong = read({ borrowedHours: { halfLifeHours: 0 } });
  t.equal(wrong?.policy.borrowedHoursHalfLifeMs, null);
  t.match(wrong?.problems, [/spec.borrowedHours.halfLifeHours: expected more than 0 and at most 87600, found 0/]);
  t.end();
});

test('the status of a borrower shows its hours while the policy has a half-life', async (t) => {
  const quota = await QuotaCluster.start(0);
  t.teardown(() => quota.stop());
  await quota.join({ refreshMs: 300 });
  const policy = { metadata: { name: 'default' }, spec: { borrowedHours: { halfLifeHours: 1000 } } };
  await quota.client.request({ method: 'POST', path: POLICIES_PATH, body: policy });
  const hard = { 'limits.cpu': 0, 'cash/limits.cpu': 1_000 };
  for (const [name, more] of [
    ['root', { hard: { ...hard, 'limits.cpu': 3_000_000 } }],
    ['borrower', { hard, parentBizGroup: 'root', mode: 'elastic' }],
  ] as const)
    await quota.client.request({ method: 'POST', path: GROUPS_PATH, body: { metadata: { name }, spec: more } });
  t.ok((await quota.deploy('web', 'borrower', 1, 1_000_000)).ok);
  const uid = quota.server.read('deployments', 'default', 'web')?.metadata.uid ?? '';
  quota.server.seed('pods', {
    metadata: {
      name: 'web-1',
      namespace: 'default',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true }],
    },
    spec: { nodeName: 'node1', containers: [{ name: 'main', resources: { limits: { cpu: '1000000' } } }] },
    status: { phase: 'Running' },
  });
  const hours = (): number =>
    Number((quota.statusOf('borrower')['borrowedHours'] as BorrowedHours | undefined)?.hours['limits.cpu'] ?? 0);
  await eventually(() => hours() > 100, 'the hours to be counted');
  await quota.client.request({ method: 'DELETE', path: `${POLICIES_PATH}/default` });
  await eventually(() => quota.statusOf('borrower')['borrowedHours'] === undefined, 'them to be counted no longer');
});
