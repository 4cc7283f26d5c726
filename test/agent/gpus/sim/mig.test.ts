import { test } from 'tap';
import type { Driver, DriverEvent } from '../../../../src/agent/gpus/driver.js';
import { parseSimNode } from '../../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../../src/agent/gpus/sim/sim-driver.js';
import { systemClock } from '../../../../src/host/clock.js';
import { eventually } from '../../../harness/eventually.js';
import { driverContract } from '../contract.js';
import { SimulatedMachine, noCompiler, notBuilt } from './simulated-machine.js';

const skip = notBuilt;

const A100 = {
  model: 'NVIDIA A100-SXM4-40GB',
  memoryMiB: 40_960,
  multiprocessors: 108,
  computeCapability: '8.0',
  numaNode: 1,
};

/** A divided GPU between two undivided ones, all linked. */
const MACHINE = new SimulatedMachine(
  JSON.stringify({
    gpus: [{ ...A100, mig: ['3g.20gb', '2g.10gb', '1g.5gb'] }, A100, A100],
    links: [
      ['X', 'NV4', 'NV4'],
      ['NV4', 'X', 'NV4'],
      ['NV4', 'NV4', 'X'],
    ],
  }),
);
const [parent = '', whole = ''] = MACHINE.node.gpus.map((gpu) => gpu.uuid);

const inProcess = async (): Promise<Driver> => new SimDriver(MACHINE.node, systemClock, true);
const throughNvml = async (): Promise<Driver> => MACHINE.open({ mig: 'instances' });

driverContract('sim with a divided GPU', inProcess);
if (skip === false) driverContract('NVML of a divided GPU', throughNvml);

test('both simulations show the same instances, with the numbers and sizes of NVIDIA', { skip }, async (t) => {
  const [one, other] = [await inProcess(), await throughNvml()];
  const [expected, found] = [await one.inventory(), await other.inventory()];
  await other.close();
  const facts = (gpus: typeof found.gpus) =>
    gpus.map(({ index, uuid, model, memoryBytes, minor, pciBusId, numaNode, instance }) => ({
      ...{ index, uuid, model, memoryBytes, minor, pciBusId, numaNode, instance },
    }));
  t.same(facts(found.gpus), facts(expected.gpus));
  t.same(found.topology, expected.topology);
  t.same(
    found.gpus.map(({ index, instance, memoryBytes }) => [
      index,
      instance?.profile,
      instance?.gpuInstance,
      instance?.multiprocessors,
      memoryBytes / 2 ** 20,
    ]),
    [
      [1, undefined, undefined, undefined, 40_960],
      [2, undefined, undefined, undefined, 40_960],
      [3, '3g.20gb', 1, 42, 20_096],
      [4, '2g.10gb', 5, 28, 9_984],
      [5, '1g.5gb', 13, 14, 4_864],
    ],
  );
  t.same(found.topology.levels[2], ['NODE', 'NODE', 'X', 'PIX', 'PIX']);
  t.same(found.topology.nvlinks[0], [0, 4, 0, 0, 0]);
  t.match(found.notes.join('\n'), `GPU 0 (${parent}) is excluded: its MIG instances are offered`);
});

test('a divided GPU without instances is left out', { skip }, async (t) => {
  for (const driver of [new SimDriver(MACHINE.node), MACHINE.open()]) {
    const { gpus, excluded } = await driver.inventory();
    t.same([gpus.map(({ index }) => index), excluded.map(({ gpu }) => gpu.uuid)], [[1, 2], [parent]]);
    await driver.close();
  }
});

test(
  'an instance has its own memory and processes, and the temperature of its GPU',
  { skip: skip || noCompiler },
  async (t) => {
    const driver = await throughNvml();
    t.teardown(() => driver.close());
    const instances = (await driver.inventory()).gpus.filter(({ instance }) => instance !== undefined);
    const [first, second] = instances.map(({ uuid }) => uuid);
    const child = MACHINE.startProgram(t, { CUDA_VISIBLE_DEVICES: second ?? '' });
    await eventually(
      async () => (await driver.processes(second ?? '')).length > 0,
      'the program to be on its instance',
    );
    t.match(await driver.processes(second ?? ''), [{ pid: child.pid, utilizationPercent: null }]);
    t.same(await driver.processes(first ?? ''), []);
    const sample = await driver.sample(second ?? '');
    t.ok((sample.usedMemoryBytes ?? 0) > 64 * 2 ** 20);
    t.equal(sample.utilizationPercent, null, 'NVML does not report the utilisation of an instance');
    t.ok((sample.temperatureCelsius ?? 0) > 0);
    t.ok(((await driver.sample(first ?? '')).usedMemoryBytes ?? Infinity) < sample.usedMemoryBytes!);
  },
);

/** Events of one kind that `act` causes: at least `count` of them. */
async function heardOf(
  driver: Driver,
  act: () => Promise<unknown>,
  kind: DriverEvent['kind'],
  count: number,
): Promise<readonly DriverEvent[]> {
  const heard: DriverEvent[] = [];
  const leave = driver.subscribe((event) => void (event.kind === kind && heard.push(event)));
  await driver.inventory();
  await act();
  await eventually(() => heard.length >= count, `${count} events ${kind}`);
  leave();
  return heard;
}

test(
  'an error of the GPU is an error of all its instances, and an error of one instance is its own',
  { skip },
  async (t) => {
    const driver = MACHINE.open({ mig: 'instances', tickMs: 20 });
    t.teardown(() => driver.close());
    const { gpus } = await driver.inventory();
    const instances = gpus.flatMap(({ uuid, instance }) => (instance === undefined ? [] : uuid));
    const uuids = (events: readonly DriverEvent[]) =>
      events.flatMap((event) => ('uuid' in event ? [event.uuid] : [])).sort();
    const all = [parent, ...instances].sort();
    // Subscribed throughout: a driver without listeners does not poll.
    driver.subscribe(() => undefined);
    t.same(uuids(await heardOf(driver, () => MACHINE.order('xid', '0', '79'), 'xid', 4)), all);
    t.same(await heardOf(driver, () => MACHINE.order('xid', '0/5', '94'), 'xid', 1), [
      { kind: 'xid', uuid: instances[1], xid: 94 },
    ]);
    t.same(uuids(await heardOf(driver, () => MACHINE.order('lose', '0'), 'lost', 4)), all);
    t.same(uuids(await heardOf(driver, () => MACHINE.order('restore', '0'), 'found', 4)), all);
    t.notOk(all.includes(whole));
  },
);

test('impossible divisions are refused with the place', (t) => {
  const read = (gpu: object): string => {
    const parsed = parseSimNode(JSON.stringify({ gpus: [gpu] }));
    return parsed.ok ? 'accepted' : parsed.reason;
  };
  t.equal(read({ ...A100, mig: [] }), 'accepted');
  t.equal(read({ ...A100, mig: ['3g.20gb', '2g.10gb', '1g.5gb', '1g.5gb'] }), 'accepted');
  const models = 'an A100 of 40 or 80 GB, an H100 of 80 GB or an H200, by model and memoryMiB';
  t.equal(read({ mig: [] }), `gpus[0].mig: expected ${models}, got []`);
  const profiles = 'profiles of 1g.5gb, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb';
  t.equal(read({ ...A100, mig: ['1g.10gb+me'] }), `gpus[0].mig: expected ${profiles}, got ["1g.10gb+me"]`);
  const fit = 'instances that fit beside each other on the GPU';
  t.equal(read({ ...A100, mig: ['4g.20gb', '4g.20gb'] }), `gpus[0].mig: expected ${fit}, got ["4g.20gb","4g.20gb"]`);
  t.match(
    read({ ...A100, mig: Array.from({ length: 8 }, () => '1g.5gb') }),
    'gpus[0].mig: expected at most 7 instances',
  );
  t.equal(read({ ...A100, mig: '1g.5gb' }), 'gpus[0].mig: expected a list, got "1g.5gb"');
  t.end();
});
