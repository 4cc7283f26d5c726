import { readFileSync } from 'node:fs';
import { test, type Test } from 'tap';
import { parseHealthPolicy } from '../../../src/agent/gpus/health-policy-file.js';
import { HealthMonitor, type HealthNews } from '../../../src/agent/gpus/health-monitor.js';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { ManualClock } from '../../manual-clock.js';

const settled = () => new Promise((resolve) => setImmediate(resolve));

async function watched(t: Test) {
  const node = parseSimNode('{"gpus":[{},{},{}]}');
  const policy = parseHealthPolicy(readFileSync(new URL('../../../../etc/xid-classes.json', import.meta.url), 'utf8'));
  if (!node.ok || !policy.ok) throw new Error('fixtures do not read');
  const clock = new ManualClock();
  const driver = new SimDriver(node.node, clock);
  const monitor = new HealthMonitor({ driver, inventory: await driver.inventory(), policy: policy.policy, clock });
  const news: HealthNews[] = [];
  monitor.subscribe((item) => news.push(item));
  monitor.start();
  t.teardown(() => monitor.stop());
  const uuid = (at: number): string => node.node.gpus[at]?.uuid ?? '';
  return { clock, driver, monitor, news, uuid, statuses: () => [0, 1, 2].map((at) => monitor.health(uuid(at)).status) };
}

test('every GPU is healthy at first', async (t) => {
  const { monitor, statuses } = await watched(t);
  t.same(statuses(), ['healthy', 'healthy', 'healthy']);
  t.equal(monitor.unusable().size, 0);
});

test('a transient error is reported at once, and so is the end of the probation', async (t) => {
  const { clock, driver, monitor, news, uuid } = await watched(t);
  driver.raiseXid(uuid(1), 94);
  t.match(news, [{ kind: 'health', uuid: uuid(1), before: { status: 'healthy' }, after: { status: 'probation' } }]);
  t.match(monitor.unusable().get(uuid(1)), /^XID 94/);
  clock.advance(59_999);
  t.equal(news.length, 1);
  clock.advance(1);
  t.match(news[1], { kind: 'health', uuid: uuid(1), before: { status: 'probation' }, after: { status: 'healthy' } });
  t.equal(monitor.unusable().size, 0);
});

test('the probations of several GPUs end each at its own time', async (t) => {
  const { clock, driver, news, uuid, statuses } = await watched(t);
  driver.raiseXid(uuid(0), 94);
  clock.advance(20_000);
  driver.raiseXid(uuid(2), 94);
  clock.advance(40_000);
  t.same(statuses(), ['healthy', 'healthy', 'probation']);
  clock.advance(20_000);
  t.same(statuses(), ['healthy', 'healthy', 'healthy']);
  t.equal(news.length, 4);
});

test('an application error is logged and changes no health', async (t) => {
  const { driver, news, uuid, statuses } = await watched(t);
  driver.raiseXid(uuid(0), 31);
  t.same(news, [{ kind: 'remark', uuid: uuid(0), text: 'XID 31 (page fault: an illegal address)' }]);
  t.same(statuses(), ['healthy', 'healthy', 'healthy']);
});

test('a GPU that falls off the bus is unhealthy, and on probation when it answers again', async (t) => {
  const { clock, driver, uuid, statuses, monitor } = await watched(t);
  driver.raiseXid(uuid(2), 79);
  driver.lose(uuid(2));
  t.same(statuses(), ['healthy', 'healthy', 'lost']);
  t.equal(monitor.unusable().get(uuid(2)), 'fallen off the bus (simulated)');
  driver.find(uuid(2));
  t.same(statuses(), ['healthy', 'healthy', 'probation']);
  clock.advance(60_000);
  t.same(statuses(), ['healthy', 'healthy', 'healthy']);
});

test('no GPU is usable while the driver does not answer; afterwards the healthy ones are', async (t) => {
  const { driver, monitor, news, uuid, statuses } = await watched(t);
  driver.raiseEcc(uuid(1));
  driver.breakDown('driver reload');
  t.equal(monitor.outage, 'driver reload');
  t.same([...monitor.unusable().values()], new Array(3).fill('the driver does not answer: driver reload'));
  driver.restore();
  await settled();
  t.equal(monitor.outage, null);
  t.same(statuses(), ['healthy', 'probation', 'healthy']);
  t.same(
    news.map((item) => item.kind),
    ['health', 'driver', 'driver', 'health', 'inventory'],
  );
});

test('a GPU that is removed has no health, and is healthy when it is added again', async (t) => {
  const { driver, monitor, news, uuid } = await watched(t);
  driver.raiseXid(uuid(0), 48);
  driver.remove(uuid(0));
  await settled();
  t.match(news.at(-1), { kind: 'inventory' });
  t.equal(monitor.inventory.gpus.length, 2);
  t.throws(() => monitor.health(uuid(0)), RangeError);
  driver.add(uuid(0));
  await settled();
  t.equal(monitor.health(uuid(0)).status, 'healthy');
  t.equal(monitor.inventory.gpus.length, 3);
});

test('an unreadable inventory is read when the driver is back', async (t) => {
  const { driver, monitor, uuid } = await watched(t);
  driver.remove(uuid(0));
  driver.breakDown('gone');
  await settled();
  t.equal(monitor.inventory.gpus.length, 3);
  driver.restore();
  await settled();
  t.equal(monitor.inventory.gpus.length, 2);
});

test('a stopped monitor reports nothing, not even the end of a probation', async (t) => {
  const { clock, driver, monitor, news, uuid } = await watched(t);
  driver.raiseXid(uuid(0), 94);
  await monitor.stop();
  driver.raiseXid(uuid(1), 94);
  clock.advance(120_000);
  t.equal(news.length, 1);
});
