import { test } from 'tap';
import {
  MemoryStore,
  Quota,
  SharedMemory,
  createEngine,
  type GroupGrant,
  type QuotaEvent,
} from '../../../../src/quota/index.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const KEY = 'cash/requests.nvidia.com/gpu';
const START = Date.parse('2026-03-02T00:00:00Z');

/** A group in which `cards` GPUs run from the beginning. */
function burning(cards: number, grants: readonly GroupGrant[], hours = 0) {
  let now = START;
  const quota = new Quota({ clock: () => now });
  const events: QuotaEvent[] = [];
  quota.on((event) => events.push(event));
  const made = quota.createGroup({ name: 'team', hard: { 'requests.nvidia.com/gpu': 8, [KEY]: hours }, grants });
  if (cards > 0)
    quota.execute({
      type: 'podStarted',
      pod: 'p',
      workload: { kind: 'Job', name: 'w' },
      group: 'team',
      limits: { 'nvidia.com/gpu': cards },
    });
  return {
    quota,
    events,
    made,
    at(ms: number) {
      now = START + ms;
      quota.execute({ type: 'tick' });
      return this.budget();
    },
    budget() {
      const [budget] = quota.status('team')?.budgets ?? [];
      const hours = (amount: bigint | undefined): number => Number(amount ?? 0n) / HOUR;
      return {
        granted: hours(budget?.granted),
        used: hours(budget?.used),
        left: hours(budget?.left),
        next: budget?.nextGrantAt ?? null,
      };
    },
  };
}

test('a weekly grant per person: the unused part is lost, except for the carry-over', (t) => {
  const weekly = {
    name: 'weekly',
    key: KEY,
    amount: 10,
    persons: 3,
    every: '7d',
    carryOver: 5,
    from: '2026-02-23T00:00:00Z',
  };
  const team = burning(0, [weekly]);
  t.match(team.made, { allowed: true });
  t.same(team.at(0), { granted: 30, used: 0, left: 30, next: START + WEEK }, 'the week that is now counts');
  team.quota.execute({
    type: 'podStarted',
    pod: 'p',
    workload: { kind: 'Job', name: 'w' },
    group: 'team',
    limits: { 'nvidia.com/gpu': 2 },
  });
  t.same(team.at(12 * HOUR), { granted: 30, used: 24, left: 6, next: START + WEEK });
  team.quota.execute({ type: 'podStopped', pod: 'p' });
  t.same(team.at(WEEK), { granted: 35, used: 0, left: 35, next: START + 2 * WEEK }, 'six are left and five stay');
  t.same(team.at(4 * WEEK + HOUR), { granted: 35, used: 0, left: 35, next: START + 5 * WEEK }, 'weeks that nobody saw');
  t.end();
});

test('a grant is given once, even if it is declared again, and ends when it expires', (t) => {
  const extra = { name: 'extra', key: KEY, amount: 50, expiresAfter: '2d' };
  const team = burning(1, [extra], 10);
  const hard = { 'requests.nvidia.com/gpu': 8, [KEY]: 10 };
  t.match(team.at(HOUR), { granted: 60, used: 1, left: 59, next: null });
  team.quota.updateGroup({ name: 'team', hard, grants: [extra] });
  t.match(team.budget(), { granted: 60 });
  team.quota.updateGroup({ name: 'team', hard, grants: [{ ...extra, amount: 70 }] });
  t.match(team.budget(), { granted: 60 }, 'a changed grant that was given stays as it was');
  t.match(team.at(2 * DAY), { granted: 58, used: 48, left: 10 }, 'what is not used of it is lost');
  team.quota.updateGroup({ name: 'team', hard, grants: [extra] });
  t.match(team.at(3 * DAY), { granted: 58, left: -14 });
  team.quota.updateGroup({ name: 'team', hard, grants: [{ ...extra, name: 'another' }] });
  t.match(team.budget(), { left: 36 }, 'another name is another grant');
  t.end();
});

test('a series ends at its end; a changed one changes in its next period; a removed one has no next period', (t) => {
  const daily = (amount: number, more: object = {}): GroupGrant => ({
    name: 'daily',
    key: KEY,
    amount,
    every: '1d',
    ...more,
  });
  const hard = { 'requests.nvidia.com/gpu': 8, [KEY]: 0 };
  const team = burning(0, [daily(10)]);
  t.match(team.at(HOUR), { left: 10, next: START + DAY });
  team.quota.updateGroup({ name: 'team', hard, grants: [daily(20)] });
  t.match(team.budget(), { left: 10, next: START + DAY });
  t.match(team.at(DAY), { left: 20, next: START + 2 * DAY });
  team.quota.updateGroup({ name: 'team', hard });
  t.match(team.budget(), { next: START + 2 * DAY }, 'an update that says nothing about grants leaves them');
  team.quota.updateGroup({ name: 'team', hard, grants: [] });
  t.match(team.at(3 * DAY), { left: 20, next: null });
  const ending = burning(0, [daily(10, { until: '2026-03-04T12:00:00Z' })]);
  t.match(ending.at(2 * DAY), { left: 10, next: null });
  t.match(ending.at(2 * DAY + 12 * HOUR), { left: 0 });
  t.end();
});

test('80, 90 and 100 percent refer to the last grant, and the time of the next level is known', (t) => {
  const team = burning(1, [{ name: 'daily', key: KEY, amount: 20, every: '1d' }]);
  const levels = (): readonly (number | undefined)[] =>
    team.events.filter(({ type }) => type === 'cashThreshold').map(({ percent }) => percent);
  t.equal(team.quota.status('team')?.budgets[0]?.nextLevelAt, START + 16 * HOUR);
  team.at(16 * HOUR);
  team.quota.refresh();
  t.same(levels(), [80]);
  t.match(team.quota.status('team')?.budgets[0], { level: 80, nextLevelAt: START + 18 * HOUR });
  team.at(20 * HOUR);
  t.match(team.quota.status('team')?.budgets[0], { level: 100, nextLevelAt: null });
  team.at(DAY + HOUR);
  t.match(team.quota.status('team')?.budgets[0], { level: 0, granted: BigInt(20 * HOUR), used: BigInt(HOUR) });
  t.end();
});

test('a grant that the parent cannot pay is refused with the reason and retried', (t) => {
  let now = START;
  const quota = new Quota({ clock: () => now });
  const hard = { 'limits.cpu': 1, 'cash/limits.cpu': 0 };
  quota.createGroup({ name: 'company', hard: { ...hard, 'cash/limits.cpu': 5 } });
  const extra = { name: 'extra', key: 'cash/limits.cpu', amount: 8 };
  t.match(quota.createGroup({ name: 'team', parent: 'company', hard, grants: [extra] }), { allowed: true });
  t.match(quota.status('team'), { grants: [{ name: 'extra', begun: null, refused: /exceeded quota: company/ }] });
  quota.updateGroup({ name: 'company', hard: { ...hard, 'cash/limits.cpu': 10 } });
  now += 61_000;
  quota.execute({ type: 'tick' });
  t.match(quota.status('team'), {
    grants: [{ refused: '' }],
    hard: new Map([['cash/limits.cpu', 8n * 1000n * 3_600_000n]]),
  });
  t.match(quota.status('company'), { budgets: [{ left: 2n * 1000n * 3_600_000n }] });
  t.end();
});

test('grants outlive the engine, and engines on one store give each of them once', async (t) => {
  let now = START;
  const memory = new SharedMemory();
  const open = () => createEngine({ store: new MemoryStore(memory), clock: () => now });
  const [one, two] = [await open(), await open()];
  const hard = { 'limits.cpu': 1, 'cash/limits.cpu': 0 };
  await one.createGroup({
    name: 'team',
    hard,
    grants: [{ name: 'daily', key: 'cash/limits.cpu', amount: 3, every: '1d', mode: 'topup' }],
  });
  await two.catchUp();
  for (let day = 1; day <= 3; day++) {
    now = START + day * DAY;
    await Promise.all([one.execute({ type: 'tick' }), two.execute({ type: 'tick' })]);
    await Promise.all([one.catchUp(), two.catchUp()]);
  }
  for (const engine of [one, two, await open()])
    t.equal(engine.status('team')?.hard.get('cash/limits.cpu'), 12n * 1000n * 3_600_000n);
});

test('an unreadable grant refuses the group, with its name and the expected value', (t) => {
  const quota = new Quota({ clock: () => START });
  const grant: GroupGrant = { name: 'weekly', key: 'cash/limits.cpu', amount: 1 };
  const cases: readonly (readonly [object, string, RegExp])[] = [
    [{ name: 'a b' }, 'InvalidName', /"a b" is not a valid name of a grant/],
    [{ key: 'limits.cpu' }, 'UnknownKey', /grant weekly: the group has no budget limits.cpu in hard/],
    [{ key: 'cash/limits.memory' }, 'UnknownKey', /no budget cash\/limits.memory/],
    [{ amount: -1 }, 'InvalidQuantity', /amount: expected unit-hours, found -1/],
    [{ amount: 'lots' }, 'InvalidQuantity', /amount: expected unit-hours, found lots/],
    [{ persons: 0.5 }, 'InvalidCount', /persons/],
    [{ every: '1 week' }, 'InvalidTime', /every: expected a duration of at least 1m/],
    [{ every: '1s' }, 'InvalidTime', /every/],
    [{ expiresAfter: 'P7D' }, 'InvalidTime', /expiresAfter/],
    [{ from: 'Monday' }, 'InvalidTime', /from: expected a time/],
    [{ until: '2026-13-01T00:00:00Z' }, 'InvalidTime', /until/],
    [{ from: '2026-03-02T00:00:00Z', until: '2026-03-01T00:00:00Z' }, 'InvalidTime', /until/],
    [{ mode: 'add' }, 'InvalidMode', /"add" is unknown; expected topup or reset/],
    [{ carryOver: 2 }, 'InvalidQuantity', /carryOver: expected only with mode reset/],
  ];
  for (const [more, code, message] of cases) {
    const decision = quota.createGroup({ name: 'g', hard: { 'cash/limits.cpu': 0 }, grants: [{ ...grant, ...more }] });
    t.equal(decision.code, code);
    t.match(decision.message, message);
  }
  const twice = quota.createGroup({ name: 'g', hard: { 'cash/limits.cpu': 0 }, grants: [grant, grant] });
  t.match(twice, { code: 'GrantExists' });
  t.end();
});

test('a monthly grant is given on the first of each calendar month, at once for the current one, also after a restart', async (t) => {
  const monthly = { name: 'monthly', key: KEY, amount: 100, every: 'month', carryOver: 10 };
  let now = Date.parse('2027-01-30T12:00:00Z');
  const memory = new SharedMemory();
  const open = () => createEngine({ store: new MemoryStore(memory), clock: () => now });
  let engine = await open();
  const made = await engine.createGroup({ name: 'team', hard: { [KEY]: 0 }, grants: [monthly] });
  t.ok(made.allowed, made.message);
  const seen = async (at: string) => {
    now = Date.parse(at);
    await engine.tick();
    const [budget] = engine.status('team')?.budgets ?? [];
    return [Number(budget?.granted ?? 0n) / HOUR, new Date(budget?.nextGrantAt ?? 0).toISOString()];
  };
  t.same(await seen('2027-01-30T12:00:00Z'), [100, '2027-02-01T00:00:00.000Z']);
  t.same(await seen('2027-02-01T00:00:00Z'), [110, '2027-03-01T00:00:00.000Z'], 'with the carry-over');
  engine = await open();
  t.same(await seen('2027-02-28T23:59:59Z'), [110, '2027-03-01T00:00:00.000Z']);
  t.same(await seen('2027-03-01T00:00:00Z'), [110, '2027-04-01T00:00:00.000Z']);
  t.same(await seen('2028-02-29T00:00:00Z'), [110, '2028-03-01T00:00:00.000Z'], 'after eleven months without commands');
  t.match(engine.status('team')?.grants, [{ name: 'monthly', every: 'month' }]);
  t.end();
});

test('a monthly grant begins on the day of its first time, which every month must have', (t) => {
  const monthly = { name: 'monthly', key: KEY, amount: 100, every: 'month' };
  const team = burning(0, [{ ...monthly, from: '2026-02-15T08:00:00Z' }]);
  t.ok(team.made.allowed, team.made.message);
  t.same(team.at(0), { granted: 100, used: 0, left: 100, next: Date.parse('2026-03-15T08:00:00Z') });
  t.equal(team.at(14 * DAY).next, Date.parse('2026-04-15T08:00:00Z'));
  const late = burning(0, [{ ...monthly, from: '2026-01-31T08:00:00Z' }]).made;
  t.match(late.message, /from: with every: month, expected a day from 1 to 28/);
  t.match(
    burning(0, [{ ...monthly, every: 'year' }]).made.message,
    /expected a duration of at least 1m, such as 7d or 168h, or month/,
  );
  t.end();
});
