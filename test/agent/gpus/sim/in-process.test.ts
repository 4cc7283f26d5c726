import { test } from 'tap';
import { DummyDriver } from '../../../../src/agent/gpus/dummy/dummy-driver.js';
import type { DriverEvent } from '../../../../src/agent/gpus/driver.js';
import { parseSimNode, type SimNode } from '../../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../../src/agent/gpus/sim/sim-driver.js';
import { systemClock } from '../../../../src/host/clock.js';
import { driverContract } from '../contract.js';

function node(text: string): SimNode {
  const result = parseSimNode(text);
  if (!result.ok) throw new Error(result.reason);
  return result.node;
}

const FOUR = node(`     GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity
GPU0 X NV4 SYS SYS 0-7 0
GPU1 NV4 X SYS SYS 0-7 0
GPU2 SYS SYS X PIX 8-15 1
GPU3 SYS SYS PIX X 8-15 1
`);

driverContract('sim', async () => new SimDriver(FOUR));
driverContract('sim with one GPU', async () => new SimDriver(node('{"gpus":[{}]}')));
driverContract('dummy', async () => new DummyDriver());

const uuid = (at: number): string => FOUR.gpus[at]?.uuid ?? '';

test('events reach every listener, in order', (t) => {
  const driver = new SimDriver(FOUR);
  const heard: [DriverEvent[], DriverEvent[]] = [[], []];
  driver.subscribe((event) => heard[0].push(event));
  driver.subscribe((event) => heard[1].push(event));
  driver.raiseXid(uuid(1), 79);
  driver.lose(uuid(1));
  driver.find(uuid(1));
  driver.raiseEcc(uuid(2));
  driver.breakDown('driver reload');
  driver.restore();
  const expected = [
    { kind: 'xid', uuid: uuid(1), xid: 79 },
    { kind: 'lost', uuid: uuid(1), reason: 'fallen off the bus (simulated)' },
    { kind: 'found', uuid: uuid(1) },
    { kind: 'ecc', uuid: uuid(2) },
    { kind: 'unreachable', reason: 'driver reload' },
    { kind: 'reachable' },
  ];
  t.same(heard, [expected, expected]);
  t.end();
});

test('a lost GPU stays in the inventory and refuses its calls', async (t) => {
  const driver = new SimDriver(FOUR);
  driver.lose(uuid(0));
  t.equal((await driver.inventory()).gpus.length, 4);
  await t.rejects(driver.sample(uuid(0)), { code: 'gpu-lost' });
  driver.find(uuid(0));
  await t.resolves(driver.sample(uuid(0)));
});

test('a removed GPU leaves inventory and topology, the GPUs behind it move up, and it can return', async (t) => {
  const driver = new SimDriver(FOUR);
  const events: DriverEvent[] = [];
  driver.subscribe((event) => events.push(event));
  driver.remove(uuid(0));
  const { gpus, topology } = await driver.inventory();
  t.same(
    gpus.map((gpu) => [gpu.index, gpu.uuid]),
    [
      [0, uuid(1)],
      [1, uuid(2)],
      [2, uuid(3)],
    ],
  );
  t.same(topology.nvlinks, [
    [0, 0, 0],
    [0, 0, 0],
    [0, 0, 0],
  ]);
  t.equal(topology.levels[1]?.[2], 'PIX');
  await t.rejects(driver.sample(uuid(0)), { code: 'unknown-gpu' });
  driver.add(uuid(0));
  t.same(events, [{ kind: 'changed' }, { kind: 'changed' }]);
  t.equal((await driver.inventory()).gpus.length, 4);
});

test('every call rejects during an outage, and works again afterwards', async (t) => {
  const driver = new SimDriver(FOUR);
  driver.breakDown('driver reload');
  for (const call of [() => driver.inventory(), () => driver.sample(uuid(0)), () => driver.processes(uuid(0))]) {
    await t.rejects(async () => void (await call()), { code: 'unreachable', message: 'driver reload' });
  }
  driver.restore();
  t.equal((await driver.inventory()).gpus.length, 4);
});

test('a load appears as utilisation, memory and processes', async (t) => {
  const driver = new SimDriver(FOUR, { ...systemClock, now: () => 1234 });
  const processes = [
    { pid: 41, usedMemoryBytes: 1000, utilizationPercent: 60 },
    { pid: 42, usedMemoryBytes: 500, utilizationPercent: null },
  ];
  driver.setLoad(uuid(3), { utilizationPercent: 70, processes });
  t.match(await driver.sample(uuid(3)), { atMs: 1234, utilizationPercent: 70, usedMemoryBytes: 1500 });
  t.same(await driver.processes(uuid(3)), processes);
  t.same(await driver.processes(uuid(2)), []);
});

test('unequal GPUs and an empty machine are reported', async (t) => {
  const mixed = new SimDriver(node('{"gpus":[{"model":"Tesla T4"},{"model":"NVIDIA H200","memoryMiB":143771}]}'));
  t.match((await mixed.inventory()).notes, [/^unequal GPUs: Tesla T4 \(16.0 GiB\), NVIDIA H200 \(140.4 GiB\)/]);
  t.same((await new DummyDriver().inventory()).notes, ['no GPU that can be shared']);
});
