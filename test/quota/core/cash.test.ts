import { test } from 'tap';
import {
  MemoryStore,
  Quota,
  SharedMemory,
  createEngine,
  formatAmount,
  type QuotaEvent,
} from '../../../src/quota/index.js';

const HOUR = 3_600_000;
const WEEK = 7 * 24 * HOUR;
const KEY = 'cash/limits.cpu';

interface Desk {
  readonly quota: Quota;
  readonly events: QuotaEvent[];
  /** Runs the pod of `cores` from one hour to another. */
  readonly burn: (group: string, cores: number, from: number, to: number) => void;
  readonly at: (hour: number) => void;
  readonly hard: (group: string) => string;
  readonly used: (group: string) => string;
}

function desk(): Desk {
  let now = 0;
  let pods = 0;
  const quota = new Quota({ clock: () => now });
  const events: QuotaEvent[] = [];
  quota.on((event) => events.push(event));
  const shown = (group: string, what: 'hard' | 'used') =>
    formatAmount(KEY, quota.status(group)?.[what].get(KEY) ?? -1n);
  return {
    quota,
    events,
    burn(group, cores, from, to) {
      now = from * HOUR;
      const pod = `pod-${pods++}`;
      quota.execute({
        type: 'podStarted',
        pod,
        workload: { kind: 'Job', name: 'burner' },
        group,
        limits: { cpu: cores },
      });
      now = to * HOUR;
      quota.execute({ type: 'podStopped', pod });
    },
    at(hour) {
      now = hour * HOUR;
      quota.execute({ type: 'tick' });
    },
    hard: (group) => shown(group, 'hard'),
    used: (group) => shown(group, 'used'),
  };
}

const job = (name: string, group: string) => ({
  workload: { kind: 'Job', name },
  group,
  podSets: [{ count: 1, limits: { cpu: 1 } }],
});

test('a weekly grant of a thousand hours renews the budget each week', (t) => {
  const { quota, burn, at, hard, used } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 0 } });
  t.equal(quota.admit(job('a', 'g')).code, 'CashExhausted');
  t.equal(quota.grant({ id: 'weekly', group: 'g', key: KEY, amount: 1000, mode: 'reset', everyMs: WEEK }).code, 'OK');
  t.equal(quota.admit(job('a', 'g')).code, 'OK');
  burn('g', 1000, 0, 1.5);
  t.equal(used('g'), '1500', 'running work goes on beyond the budget');
  const refused = quota.admit(job('b', 'g'));
  t.equal(refused.code, 'CashExhausted');
  t.equal(refused.hints.freeAt, WEEK, 'and the answer says when there is cash again');
  at(WEEK / HOUR);
  t.equal(quota.admit(job('b', 'g')).code, 'OK');
  t.equal(hard('g'), '2500', 'hours that were consumed stay consumed');
  at((4 * WEEK) / HOUR);
  t.equal(hard('g'), '2500', 'what was not used in a week is not kept');
  t.end();
});

test('the unused rest is carried over up to its limit', (t) => {
  const { quota, burn, at, hard } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 0 } });
  quota.grant({ id: 'daily', group: 'g', key: KEY, amount: 10, mode: 'reset', carryOverMax: 4, everyMs: 24 * HOUR });
  burn('g', 3, 0, 1);
  at(24);
  t.equal(hard('g'), '17', '3 used, 4 of the 7 that are left, 10 new');
  at(48);
  t.equal(hard('g'), '17', 'of 14 that are left again only 4');
  t.end();
});

test('consumption uses the grant that expires first, and the rest of a grant is lost when it expires', (t) => {
  const { quota, burn, at, hard, events } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 5 } });
  quota.grant({ id: 'long', group: 'g', key: KEY, amount: 10, expiresAt: 100 * HOUR });
  quota.grant({ id: 'short', group: 'g', key: KEY, amount: 10, expiresAt: 10 * HOUR });
  t.equal(hard('g'), '25');
  burn('g', 4, 0, 1);
  at(10);
  t.equal(hard('g'), '19', 'six of the short grant are lost');
  burn('g', 3, 10, 11);
  at(100);
  t.equal(hard('g'), '12', 'seven of the long one: 5, 4 and 3 remain');
  t.same(
    events
      .filter(({ type }) => type === 'grantEnded')
      .map(({ subject, amounts }) => [subject, formatAmount(KEY, amounts?.get(KEY) ?? 0n)]),
    [
      ['short', '6'],
      ['long', '7'],
    ],
  );
  t.end();
});

test("a grant to a child reduces the parent's budget when it begins", (t) => {
  const { quota, at, used, hard, events } = desk();
  quota.createGroup({ name: 'p', hard: { [KEY]: 10 } });
  quota.createGroup({ name: 'c', parent: 'p', hard: { [KEY]: 4 } });
  t.equal(quota.grant({ id: 'much', group: 'c', key: KEY, amount: 7 }).code, 'ParentExceeded');
  t.equal(quota.grant({ id: 'some', group: 'c', key: KEY, amount: 5, expiresAt: 8 * HOUR }).code, 'OK');
  t.equal(used('p'), '9');
  quota.grant({ id: 'later', group: 'c', key: KEY, amount: 2, validFrom: 2 * HOUR });
  at(3);
  t.equal(events.at(-1)?.type, 'grantRefused');
  t.equal(hard('c'), '9');
  at(8);
  t.equal(used('p'), '4', 'what was not consumed is back');
  t.end();
});

test('thresholds are reported once, and again after a top-up', (t) => {
  const { quota, burn, events } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  const announced = () => events.filter(({ type }) => type === 'cashThreshold').map(({ percent }) => percent);
  burn('g', 85, 0, 1);
  quota.refresh();
  t.same(announced(), [80]);
  burn('g', 10, 1, 2);
  burn('g', 10, 2, 3);
  t.same(announced(), [80, 90, 100]);
  quota.updateGroup({ name: 'g', hard: { [KEY]: 200 } });
  burn('g', 60, 3, 4);
  t.same(announced(), [80, 90, 100, 80]);
  t.end();
});

test('the status shows the rate of consumption and when the budget is used up', (t) => {
  const { quota } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  quota.execute({ type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'j' }, group: 'g', limits: { cpu: 4 } });
  const status = quota.status('g');
  t.equal(status?.burnRate.get(KEY), 4000n);
  t.equal(status?.exhaustsAt, 25 * HOUR);
  t.same(quota.status('g', 25 * HOUR)?.conditions, [{ type: 'CashExhausted', keys: [KEY] }]);
  t.end();
});

test('a key added to a running group counts from then on; a key that is removed and added again keeps its count', (t) => {
  const { quota, at, used } = desk();
  quota.createGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  quota.execute({ type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'j' }, group: 'g', limits: { cpu: 2 } });
  at(5);
  quota.updateGroup({ name: 'g', hard: { 'limits.cpu': 10, [KEY]: 100 } });
  t.equal(used('g'), '0');
  at(7);
  t.equal(used('g'), '4');
  quota.updateGroup({ name: 'g', hard: { 'limits.cpu': 10 } });
  at(8);
  quota.updateGroup({ name: 'g', hard: { 'limits.cpu': 10, [KEY]: 100 } });
  t.equal(used('g'), '6');
  t.end();
});

test('pods are charged to another group when their workload moves', (t) => {
  const { quota, at, used } = desk();
  for (const name of ['g', 'h']) quota.createGroup({ name, hard: { [KEY]: 100 } });
  quota.admit(job('a', 'g'));
  quota.execute({ type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'a' } });
  at(3);
  quota.admit(job('a', 'h'));
  at(5);
  quota.execute({ type: 'podStopped', pod: 'p' });
  at(9);
  t.same([used('g'), used('h')], ['3', '2']);
  t.end();
});

test('a pod that is resized in place is charged for its amounts over time', (t) => {
  const { quota, at, used } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  const pod = (cpu: number, hour: number) =>
    quota.execute({
      type: 'podStarted',
      pod: 'p',
      workload: { kind: 'Job', name: 'a' },
      group: 'g',
      limits: { cpu },
      since: hour * HOUR,
    });
  at(10);
  pod(5, 4);
  pod(1, 0);
  quota.execute({ type: 'podStopped', pod: 'p', end: 6 * HOUR });
  t.equal(used('g'), '14');
  t.end();
});

test('an event with a time in the future counts from now, and is reported', (t) => {
  const { quota, used, events, at } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  quota.execute({
    type: 'podStarted',
    pod: 'p',
    workload: { kind: 'Job', name: 'a' },
    group: 'g',
    limits: { cpu: 1 },
    since: 5 * HOUR,
  });
  at(1);
  t.equal(used('g'), '1');
  t.ok(events.some(({ type }) => type === 'clockSkew'));
  t.end();
});

test('the forced deletion of a group charges its running pods to the parent', (t) => {
  const { quota, at, used } = desk();
  quota.createGroup({ name: 'p', hard: { [KEY]: 100 } });
  quota.createGroup({ name: 'c', parent: 'p', hard: { [KEY]: 50 } });
  quota.admit(job('a', 'c'));
  quota.execute({ type: 'podStarted', pod: 'p', workload: { kind: 'Job', name: 'a' } });
  at(7);
  t.equal(quota.deleteGroup('c').code, 'HasWorkloads');
  t.equal(quota.deleteGroup('c', { force: true }).code, 'OK');
  quota.createGroup({ name: 'c', parent: 'p', hard: { [KEY]: 50 } });
  quota.execute({ type: 'podStopped', pod: 'p', end: 3 * HOUR });
  t.same([used('p'), used('c')], ['57', '0'], 'a late end is none of the new group of that name');
  t.end();
});

test('an impossible grant is refused', (t) => {
  const { quota } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100, 'limits.cpu': 1 } });
  const grant = { id: 'x', group: 'g', key: KEY, amount: 1 };
  t.equal(quota.grant({ ...grant, group: 'nope' }).code, 'GroupNotFound');
  t.equal(quota.grant({ ...grant, key: 'limits.cpu' }).code, 'UnknownKey');
  t.equal(quota.grant({ ...grant, key: 'cash/limits.memory' }).code, 'UnknownKey');
  t.equal(quota.grant({ ...grant, amount: -1 }).code, 'InvalidQuantity');
  t.equal(quota.grant({ ...grant, amount: 'lots' }).code, 'InvalidQuantity');
  t.equal(quota.grant({ ...grant, expiresAt: 0 }).code, 'InvalidTime');
  t.equal(quota.grant({ ...grant, expiresAt: NaN }).code, 'InvalidTime');
  t.equal(quota.grant({ ...grant, validFrom: 0.5 }).code, 'InvalidTime');
  t.equal(quota.grant({ ...grant, everyMs: 1 }).code, 'InvalidTime');
  t.equal(quota.grant({ ...grant, id: 'a b' }).code, 'InvalidName');
  t.equal(quota.grant(grant).code, 'OK');
  t.equal(quota.grant(grant).code, 'GrantExists');
  t.end();
});

test('advancing time by years takes no time', (t) => {
  const { quota, at, hard, burn } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 0 } });
  quota.grant({ id: 'minutely', group: 'g', key: KEY, amount: 2, mode: 'reset', everyMs: 60_000 });
  burn('g', 1, 0, 1);
  at(24 * 365 * 100);
  t.equal(hard('g'), '3');
  t.end();
});

test('a stop that arrives before the start stops the pod, also in another engine of the store', async (t) => {
  const start = {
    type: 'podStarted',
    pod: 'p',
    workload: { kind: 'Job', name: 'j' },
    group: 'g',
    since: HOUR,
    limits: { cpu: 1 },
  } as const;
  const stop = { type: 'podStopped', pod: 'p', end: 2 * HOUR, group: 'g' } as const;
  const memory = new SharedMemory();
  const [one, two] = [
    await createEngine({ store: new MemoryStore(memory), clock: () => 0 }),
    await createEngine({ store: new MemoryStore(memory), clock: () => 0 }),
  ];
  await one.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  await two.catchUp();
  t.equal((await one.execute(stop, 3 * HOUR)).code, 'OK');
  t.equal((await two.execute(start, 3 * HOUR)).code, 'OK');
  await one.catchUp();
  for (const engine of [one, two]) t.equal(formatAmount(KEY, engine.status('g', 10 * HOUR)?.used.get(KEY) ?? -1n), '1');
  const again = await createEngine({ store: new MemoryStore(memory), clock: () => 3 * HOUR });
  t.equal(formatAmount(KEY, again.status('g', 10 * HOUR)?.used.get(KEY) ?? -1n), '1');
  t.equal((await one.execute({ ...stop, group: 'nobody', pod: 'q' }, 3 * HOUR)).code, 'GroupNotFound');
});

test('a retained pod is kept until its object is deleted, so that late repeated events count once', (t) => {
  const { quota, at, used } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  const tell = (hour: number): void => {
    at(hour);
    quota.execute({
      type: 'podStarted',
      pod: 'p',
      workload: { kind: 'Job', name: 'j' },
      group: 'g',
      since: HOUR,
      limits: { cpu: 2 },
    });
    quota.execute({ type: 'podStopped', pod: 'p', end: 3 * HOUR, retain: true });
  };
  tell(5);
  t.equal(used('g'), '4');
  for (const hour of [6, 30, 300]) tell(hour);
  t.equal(used('g'), '4');
  quota.execute({ type: 'podForgotten', pod: 'p' });
  at(400);
  t.equal(used('g'), '4');
  tell(401);
  t.equal(used('g'), '8', 'by then it is forgotten');
  t.end();
});

test('usage of a pod after its last known time is counted as uncertain', (t) => {
  const { quota, at, used } = desk();
  quota.createGroup({ name: 'g', hard: { [KEY]: 100 } });
  at(1);
  const workload = { kind: 'Job', name: 'j' };
  quota.execute({ type: 'podStarted', pod: 'p', workload, group: 'g', limits: { cpu: 2 } });
  at(10);
  quota.execute({ type: 'podStopped', pod: 'p', end: 4 * HOUR, uncertainUntil: 10 * HOUR });
  t.equal(used('g'), '6');
  t.equal(formatAmount(KEY, quota.status('g')?.uncertain.get(KEY) ?? -1n), '12');
  t.end();
});
