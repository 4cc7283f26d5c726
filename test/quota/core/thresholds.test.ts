import { test } from 'tap';
import { createEngine, MemoryStore, Quota, SharedMemory, type QuotaEvent } from '../../../src/quota/index.js';

const HOUR = 3_600_000;
const CASH = 'cash/limits.cpu';
const job = { kind: 'Job', name: 'j' };
const GROUP = { name: 'g', hard: { 'limits.cpu': 10, [CASH]: 10 } };

/** Collects [hour, percent] of the thresholds that an engine announces. */
function collect(told: (readonly [number, number | undefined])[]) {
  return ({ type, at, percent }: QuotaEvent): void => {
    if (type === 'cashThreshold') told.push([at / HOUR, percent]);
  };
}

const ALL = [
  [8, 80],
  [9, 90],
  [10, 100],
];

test('a tick announces the thresholds that running pods passed, each at its own time', async (t) => {
  let now = 0;
  const engine = await createEngine({ clock: () => now });
  const told: (readonly [number, number | undefined])[] = [];
  engine.on(collect(told));
  await engine.createGroup(GROUP);
  await engine.admit({ workload: job, group: 'g', podSets: [{ count: 1, limits: { cpu: 1 } }] });
  t.equal((await engine.podStarted({ pod: 'p', workload: job })).code, 'OK');
  now = 8.5 * HOUR;
  await engine.tick();
  t.same(told, ALL.slice(0, 1));
  now = 11 * HOUR;
  engine.refresh();
  t.same(told.length, 1, 'a refresh is a check of counters');
  await engine.tick();
  t.same(told, ALL);
  t.equal((await engine.podStopped({ pod: 'p' })).code, 'OK');
  t.same(told, ALL, 'none is announced twice');
  t.equal(engine.status('g')?.used.get(CASH), 11n * 1000n * BigInt(HOUR));
  await engine.close();
});

test('ticks at nextTimerAt announce each threshold when it is reached', (t) => {
  let now = 0;
  const quota = new Quota({ clock: () => now });
  const told: (readonly [number, number | undefined])[] = [];
  quota.on(collect(told));
  quota.createGroup(GROUP);
  t.equal(quota.nextTimerAt, null);
  quota.podStarted({ pod: 'p', workload: job, group: 'g', limits: { cpu: 1 } });
  let ticks = 0;
  for (let at = quota.nextTimerAt; at !== null; at = quota.nextTimerAt, ticks++) {
    now = at;
    quota.tick();
  }
  t.same(told, ALL);
  t.ok(ticks < 60, `${ticks} ticks: looks before a threshold become rarer with its distance`);
  t.end();
});

test('pods that start and stop change when a threshold is reached, and leave few timers', (t) => {
  let now = 0;
  const quota = new Quota({ clock: () => now });
  const told: (readonly [number, number | undefined])[] = [];
  quota.on(collect(told));
  quota.createGroup({ name: 'g', hard: { [CASH]: 10_000 } });
  // A thousand pods, one a second: together they use a thousand core-hours an hour.
  for (let pod = 0; pod < 1000; pod++) {
    now = pod * 1000;
    quota.podStarted({ pod: `p${pod}`, workload: job, group: 'g', limits: { cpu: 1 } });
  }
  const usedAt = (hour: number) => Array.from({ length: 1000 }, (_, pod) => hour - pod / 3600).reduce((a, b) => a + b);
  let timers = 0;
  for (let at = quota.nextTimerAt; at !== null; at = quota.nextTimerAt, timers++) {
    now = at;
    quota.tick();
  }
  t.same(
    told.map(([, percent]) => percent),
    [80, 90, 100],
  );
  for (const [hour, percent] of told)
    t.ok(Math.abs(usedAt(hour) / 100 - (percent ?? 0)) < 1e-5, `${percent} at ${hour}`);
  t.ok(timers < 100, `${timers} timers for 1,000 pods`);
  t.end();
});

test('a threshold is announced after a restart, and once for engines that share a store', async (t) => {
  const memory = new SharedMemory();
  let now = 0;
  const open = async () => {
    const engine = await createEngine({
      store: new MemoryStore(memory),
      clock: () => now,
      pause: () => Promise.resolve(),
    });
    const told: (readonly [number, number | undefined])[] = [];
    engine.on(collect(told));
    return { engine, told };
  };
  const first = await open();
  await first.engine.createGroup(GROUP);
  await first.engine.podStarted({ pod: 'p', workload: job, group: 'g', limits: { cpu: 1 } });
  await first.engine.close();
  const [one, two] = [await open(), await open()];
  now = 9.5 * HOUR;
  await Promise.all([one.engine.tick(), two.engine.tick()]);
  t.same([...one.told, ...two.told], ALL.slice(0, 2));
  await two.engine.catchUp();
  now = 12 * HOUR;
  await two.engine.tick();
  await one.engine.tick();
  t.same(
    [...one.told, ...two.told].sort(([a], [b]) => a - b),
    ALL,
  );
  for (const { engine } of [one, two]) await engine.close();
});
