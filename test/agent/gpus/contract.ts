import { test, type Test } from 'tap';
import { DriverError, type Driver } from '../../../src/agent/gpus/driver.js';

/**
 * The contract of every driver, for GPUs of any vendor. `open` gives each test a driver of its own; the machine may
 * have any number of GPUs.
 */
export function driverContract(name: string, open: () => Promise<Driver>): void {
  const contract = (sentence: string, body: (t: Test, driver: Driver) => Promise<void>): void => {
    test(`${name}: ${sentence}`, async (t) => {
      const driver = await open();
      t.teardown(() => driver.close());
      await body(t, driver);
    });
  };

  contract('the topology has one place for each GPU, and its links are symmetric', async (t, driver) => {
    const { gpus, topology } = await driver.inventory();
    t.equal(topology.levels.length, gpus.length);
    t.equal(topology.nvlinks.length, gpus.length);
    for (const a of gpus.keys()) {
      for (const b of gpus.keys()) {
        t.equal(topology.levels[a]?.[b], topology.levels[b]?.[a]);
        t.equal(topology.nvlinks[a]?.[b], topology.nvlinks[b]?.[a]);
        t.equal(topology.levels[a]?.[b] === 'X', a === b);
      }
    }
  });

  contract('every GPU has its own index, UUID, minor and bus id, and a memory size', async (t, driver) => {
    const { gpus, excluded } = await driver.inventory();
    const cards = [...gpus, ...excluded.map(({ gpu }) => gpu)];
    const physical = cards.filter(({ instance }) => instance === undefined);
    for (const key of ['index', 'uuid'] as const)
      t.equal(new Set(cards.map((gpu) => gpu[key])).size, cards.length, key);
    for (const key of ['minor', 'pciBusId'] as const)
      t.equal(new Set(physical.map((gpu) => gpu[key])).size, physical.length, key);
    for (const gpu of gpus) {
      t.match(gpu.uuid, gpu.instance === undefined ? /^GPU-[0-9a-f]{8}-/ : /^MIG-[0-9a-f]{8}-/);
      t.match(gpu.pciBusId, /^[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]$/);
      t.ok(gpu.memoryBytes > 0);
    }
    t.same(
      gpus.map((gpu) => gpu.index),
      gpus.map((gpu) => gpu.index).sort((a, b) => a - b),
      'GPUs are in the order of their indexes',
    );
  });

  contract('a MIG instance belongs to a GPU that is not listed, and has its node and address', async (t, driver) => {
    const { gpus, excluded, topology } = await driver.inventory();
    const instances = [...gpus.entries()].filter(([, { instance }]) => instance !== undefined);
    if (instances.length === 0) t.pass('there is none');
    for (const [at, gpu] of instances) {
      const parent = excluded.find((one) => one.gpu.uuid === gpu.instance?.parentUuid)?.gpu;
      t.match(gpu, { minor: parent?.minor, pciBusId: parent?.pciBusId, numaNode: parent?.numaNode });
      t.ok(parent !== undefined && gpu.memoryBytes < parent.memoryBytes);
      t.match(gpu.instance?.profile, /^\d+g\.\d+gb/u);
      t.ok(
        topology.nvlinks[at]?.every((links) => links === 0),
        'an instance has no NVLink',
      );
    }
  });

  contract('the inventory stays the same without a change', async (t, driver) => {
    t.same(await driver.inventory(), await driver.inventory());
  });

  contract(
    'a driver that keeps memory limits of control groups says for which GPUs, and why not',
    async (t, driver) => {
      const { gpus } = await driver.inventory();
      const limiter = driver.groupLimiter;
      if (limiter === null || gpus.length === 0) t.pass('it keeps none');
      else for (const { uuid } of gpus) t.match(await limiter.problem(uuid, '/sys/fs/cgroup'), /limits/);
    },
  );

  contract('every GPU answers with a sample and its processes', async (t, driver) => {
    const { gpus } = await driver.inventory();
    if (gpus.length === 0) t.pass('there is no GPU to ask');
    for (const { uuid, memoryBytes } of gpus) {
      const sample = await driver.sample(uuid);
      t.ok(sample.atMs > 0);
      t.ok(sample.utilizationPercent === null || (sample.utilizationPercent >= 0 && sample.utilizationPercent <= 100));
      t.ok(sample.usedMemoryBytes === null || (sample.usedMemoryBytes >= 0 && sample.usedMemoryBytes <= memoryBytes));
      for (const process of await driver.processes(uuid)) t.ok(process.pid > 0);
    }
  });

  contract('an unknown GPU is refused by name', async (t, driver) => {
    const unknown = 'GPU-ffffffff-ffff-ffff-ffff-ffffffffffff';
    for (const call of [() => driver.sample(unknown), () => driver.processes(unknown)]) {
      await t.rejects(async () => void (await call()), {
        name: 'DriverError',
        code: 'unknown-gpu',
        message: new RegExp(unknown),
      });
    }
  });

  contract('problems of the machine are reported as complete lines', async (t, driver) => {
    const { gpus, notes } = await driver.inventory();
    t.same(
      notes.filter((note) => !/^\S[^\n]*$/.test(note)),
      [],
    );
    if (gpus.length === 0) t.ok(notes.length > 0, 'a machine without GPUs is reported');
  });

  contract('a listener receives no event after it has unsubscribed', async (t, driver) => {
    const leave = driver.subscribe(() => t.fail('heard something'));
    leave();
    leave();
    t.pass('left twice');
  });

  contract('closing twice has the effect of closing once', async (t, driver) => {
    await driver.close();
    await driver.close();
    const after = await driver.inventory().catch((error: unknown) => error);
    t.ok(after instanceof DriverError || 'gpus' in (after as object));
  });
}
