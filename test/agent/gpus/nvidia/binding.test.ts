import { test, type Test } from 'tap';
import type { DriverEvent } from '../../../../src/agent/gpus/driver.js';
import { noKernelDriver, type KernelDriver } from '../../../../src/agent/gpus/nvidia/kernel-driver.js';
import { NvidiaDriver, type NvidiaOptions } from '../../../../src/agent/gpus/nvidia/nvidia-driver.js';
import { eventually } from '../../../harness/eventually.js';
import { driverContract } from '../contract.js';
import { command, noCompiler, oddLibrary, oldLibrary } from './odd-library.js';

const skip = noCompiler;

const uuid = (index: number): string => `GPU-0000000${index}-0000-0000-0000-000000000000`;

function open(t: Test, options: NvidiaOptions = {}): NvidiaDriver {
  const driver = new NvidiaDriver({ libraryPaths: [oddLibrary], kernel: noKernelDriver, tickMs: 10, ...options });
  t.teardown(async () => {
    await driver.close();
    command();
  });
  return driver;
}

/** Subscribes, and waits for events until there are `count` of them. */
function listen(driver: NvidiaDriver): {
  readonly heard: DriverEvent[];
  readonly until: (count: number) => Promise<readonly DriverEvent[]>;
} {
  const heard: DriverEvent[] = [];
  driver.subscribe((event) => heard.push(event));
  return {
    heard,
    async until(count) {
      await eventually(() => heard.length >= count, `${count} events`);
      return heard.slice(0, count);
    },
  };
}

/** A kernel without GPUs that counts how often the driver asks for them: with each connection, and once a round. */
class CountedKernel implements KernelDriver {
  readonly numaNode = async (): Promise<null> => null;
  #connections = 0;
  #rounds = 0;

  async ensureLoaded(): Promise<null> {
    this.#connections += 1;
    return null;
  }

  async gpus(): Promise<null> {
    this.#rounds += 1;
    return null;
  }

  /** Resolves when the driver has visited each GPU, whatever it does now. */
  async round(): Promise<void> {
    const before = this.#rounds;
    await eventually(() => this.#rounds >= before + 3, 'a round of the driver');
  }

  /** Resolves when the driver has tried so many times to connect. */
  async attempts(count: number): Promise<void> {
    const before = this.#connections;
    await eventually(() => this.#connections >= before + count, `${count} attempts to connect`);
  }
}

if (skip === false) {
  driverContract(
    'nvidia, through FFI',
    async () => new NvidiaDriver({ libraryPaths: [oddLibrary], kernel: noKernelDriver }),
  );
  driverContract(
    'nvidia, with an old library',
    async () => new NvidiaDriver({ libraryPaths: [oldLibrary], kernel: noKernelDriver }),
  );
}

test('a GPU is described as NVML describes it', { skip }, async (t) => {
  const inventory = await open(t).inventory();
  t.equal(inventory.driverVersion, '999.1');
  t.equal(inventory.cudaVersion, 12080);
  t.match(inventory.gpus[1], {
    index: 1,
    minor: 6,
    uuid: uuid(1),
    pciBusId: '00000000:3B:00.0',
    model: 'Odd GPU',
    memoryBytes: 16 * 1024 ** 3,
    numaNode: 65,
    ecc: null,
    mig: false,
    computeCapability: null,
  });
  t.same(inventory.excluded, []);
});

test(
  'an NVLink counts when both ends report it, and through switches the GPU with fewer links decides',
  { skip },
  async (t) => {
    command('cards 4');
    const { topology } = await open(t).inventory();
    t.same(topology.nvlinks, [
      [0, 2, 1, 1],
      [2, 0, 1, 1],
      [1, 1, 0, 1],
      [1, 1, 1, 0],
    ]);
  },
);

test('two GPUs of one board are PIX, a level that NVML does not define counts as the farthest', { skip }, async (t) => {
  command('cards 4');
  const { topology } = await open(t).inventory();
  t.equal(topology.levels[0]?.[1], 'PIX');
  t.equal(topology.levels[0]?.[2], 'SYS');
});

test(
  'a driver with the first version of every function works, and its missing functions are reported once',
  { skip },
  async (t) => {
    const said: string[] = [];
    const driver = open(t, { libraryPaths: [oldLibrary], report: (note) => said.push(note) });
    const { gpus, topology, driverVersion } = await driver.inventory();
    t.match(gpus[1], { minor: 1, pciBusId: '00000000:3B:00.0', model: 'unknown', numaNode: null, mig: null });
    t.equal(driverVersion, null);
    t.equal(topology.levels[0]?.[1], 'SYS');
    t.same(await driver.processes(uuid(0)), [
      { pid: 100, usedMemoryBytes: 1 << 20, utilizationPercent: null },
      { pid: 101, usedMemoryBytes: null, utilizationPercent: null },
    ]);
    await driver.sample(uuid(0));
    await driver.sample(uuid(0));
    const missing = 'the driver has no such function';
    t.same(said.filter((note) => !note.startsWith('GPU 1')).sort(), [
      `GPU 0: no PCIe topology (its pairs count as SYS): ${missing}`,
      `GPU 0: no compute capability: ${missing}`,
      `GPU 0: no minor number: ${missing}`,
      `GPU 0: no product name: ${missing}`,
      `GPU 0: no utilisation by process: ${missing}`,
      `GPU 0: no utilisation: ${missing}`,
      `no CUDA version: ${missing}`,
      `no driver version: ${missing}`,
      `no reports of errors (without them only a lost GPU is detected): ${missing}`,
    ]);
    t.same((await driver.inventory()).notes, said);
  },
);

test('a GPU that is divided by MIG is left out and reported', { skip }, async (t) => {
  command('cards 3', 'mig 1');
  const { gpus, excluded, topology, notes } = await open(t).inventory();
  t.same(
    gpus.map((gpu) => gpu.index),
    [0, 2],
  );
  t.same(
    excluded.map(({ gpu }) => gpu.index),
    [1],
  );
  t.equal(topology.levels.length, 2);
  t.ok(
    notes.includes(
      `GPU 1 (${uuid(1)}) is excluded: it is partitioned into MIG instances; --mig-strategy=shared, whole or dynamic offers them`,
    ),
  );
});

test('a GPU that does not answer at start is left out and reported', { skip }, async (t) => {
  command('cards 2', 'lost 0');
  const { gpus, notes } = await open(t).inventory();
  t.same(
    gpus.map((gpu) => gpu.index),
    [1],
  );
  t.match(
    notes.join('\n'),
    /GPU 0 does not answer and is excluded: nvmlDeviceGetHandleByIndex_v2 of GPU 0: the GPU has fallen off the bus/,
  );
});

test('a GPU that did not answer at start joins when it answers', { skip }, async (t) => {
  command('lost 0');
  const driver = open(t);
  t.equal((await driver.inventory()).gpus.length, 1);
  const { until } = listen(driver);
  command();
  t.same(await until(1), [{ kind: 'changed' }]);
  t.equal((await driver.inventory()).gpus.length, 2);
});

test('a machine without GPUs has an inventory', { skip }, async (t) => {
  command('cards 0');
  const { gpus, topology, notes } = await open(t).inventory();
  t.same(gpus, []);
  t.same(topology, { levels: [], nvlinks: [] });
  t.ok(notes.includes('no GPU that can be shared'));
});

test('each process is listed once, with the larger of its figures, however many there are', { skip }, async (t) => {
  const driver = open(t);
  t.same(await driver.processes(uuid(0)), []);
  command('processes 2');
  t.same(await driver.processes(uuid(0)), [
    { pid: 1000, usedMemoryBytes: 1000, utilizationPercent: 42 },
    { pid: 1001, usedMemoryBytes: 7000, utilizationPercent: 0 },
  ]);
  command('processes 300');
  const many = await driver.processes(uuid(0));
  t.equal(many.length, 300);
  t.same(many[150], { pid: 1150, usedMemoryBytes: 151_000, utilizationPercent: 0 });
});

test('XIDs and memory errors arrive with the GPU that reported them', { skip }, async (t) => {
  const driver = open(t);
  const { until } = listen(driver);
  command('events 1 79');
  t.same(await until(1), [{ kind: 'xid', uuid: uuid(1), xid: 79 }]);
  command('events 1 79', 'events 0 -1');
  t.same((await until(2))[1], { kind: 'ecc', uuid: uuid(0) });
});

test('memory errors that the driver only counts are noticed when the count rises', { skip }, async (t) => {
  command('errors 1 3');
  const kernel = new CountedKernel();
  const driver = open(t, { kernel });
  const { heard, until } = listen(driver);
  await kernel.round();
  t.same(heard, [], 'errors from before the start do not count');
  command('errors 1 4');
  t.same(await until(1), [{ kind: 'ecc', uuid: uuid(1) }]);
});

test('a lost GPU is noticed, refuses its calls, and is found again', { skip }, async (t) => {
  const driver = open(t);
  await driver.inventory();
  const { until } = listen(driver);
  command('lost 1');
  t.same(await until(1), [
    { kind: 'lost', uuid: uuid(1), reason: 'nvmlDeviceGetMemoryInfo of GPU 1: the GPU has fallen off the bus' },
  ]);
  await t.rejects(driver.sample(uuid(1)), { code: 'gpu-lost' });
  await t.resolves(driver.sample(uuid(0)), 'the other one answers');
  command();
  t.same((await until(2))[1], { kind: 'found', uuid: uuid(1) });
});

test('a GPU whose calls hang is lost after the time limit, and the other GPUs continue', { skip }, async (t) => {
  const driver = open(t);
  await driver.inventory();
  const { until } = listen(driver);
  command('hang 0');
  t.same(await until(1), [{ kind: 'lost', uuid: uuid(0), reason: 'GPU 0 does not answer within 5000 ms' }]);
  await t.resolves(driver.sample(uuid(1)));
  await t.rejects(driver.sample(uuid(0)), { code: 'timeout' });
  command();
  t.same((await until(2))[1], { kind: 'found', uuid: uuid(0) });
});

test('the driver is unreachable when calls hang on every thread, and is found again', { skip }, async (t) => {
  const driver = open(t);
  await driver.inventory();
  const { heard, until } = listen(driver);
  command('hang 0', 'hang 1');
  await eventually(() => heard.some((event) => event.kind === 'unreachable'), 'the outage');
  t.ok(heard.some((event) => event.kind === 'unreachable'));
  await t.rejects(driver.sample(uuid(1)));
  const before = heard.length;
  command();
  t.same((await until(before + 1))[before], { kind: 'reachable' });
  t.equal((await driver.inventory()).gpus.length, 2);
});

test('a driver that disappears is reported once, and its return is reported', { skip }, async (t) => {
  const kernel = new CountedKernel();
  const driver = open(t, { kernel });
  await driver.inventory();
  const { heard, until } = listen(driver);
  command('code 1', 'init 9');
  const [outage] = await until(1);
  t.match(outage, { kind: 'unreachable', reason: /NVML is not initialised/ });
  await t.rejects(driver.inventory(), {
    code: 'unreachable',
    message: 'nvmlInit_v2 of driver: the kernel driver is not loaded',
  });
  await kernel.attempts(2);
  t.equal(heard.length, 1);
  command();
  t.same((await until(2))[1], { kind: 'reachable' });
  t.equal((await driver.inventory()).gpus.length, 2);
});

test('GPUs that are added, removed or divided are noticed without a restart', { skip }, async (t) => {
  const driver = open(t);
  t.equal((await driver.inventory()).gpus.length, 2);
  const { until } = listen(driver);
  command('cards 3');
  t.same(await until(1), [{ kind: 'changed' }]);
  t.equal((await driver.inventory()).gpus.length, 3);
  command('cards 3', 'mig 0');
  t.same((await until(2))[1], { kind: 'changed' });
  t.same(
    (await driver.inventory()).gpus.map((gpu) => gpu.index),
    [1, 2],
  );
});

test('a GPU that the kernel driver binds is noticed, even if the count stays the same', { skip }, async (t) => {
  let held = ['0000:3a:00.0', '0000:3b:00.0'];
  const kernel: KernelDriver = { ...noKernelDriver, gpus: async () => held };
  const driver = open(t, { kernel });
  await driver.inventory();
  const { until } = listen(driver);
  held = ['0000:3a:00.0', '0000:3b:00.0', '0000:3c:00.0'];
  t.same(await until(1), [{ kind: 'changed' }]);
});

test('a query that fails in part loses only that part of the answer', { skip }, async (t) => {
  const driver = open(t);
  await driver.inventory();
  t.match(await driver.sample(uuid(0)), {
    utilizationPercent: null,
    usedMemoryBytes: 1024 ** 3,
    temperatureCelsius: null,
    powerMilliwatts: null,
  });
  command('code 999');
  await t.rejects(driver.sample(uuid(0)), {
    code: 'failed',
    message: 'nvmlDeviceGetMemoryInfo of GPU 0: NVML error 999',
  });
});

test('without the library the reason names the searched paths', async (t) => {
  const driver = new NvidiaDriver({
    libraryPaths: ['/nowhere/libnvidia-ml.so.1', '/nowhere/else.so'],
    kernel: noKernelDriver,
  });
  await t.rejects(driver.inventory(), {
    code: 'unreachable',
    message: 'the NVIDIA management library cannot be opened (looked for /nowhere/libnvidia-ml.so.1, /nowhere/else.so)',
  });
  await driver.close();
});

test('missing kernel modules are loaded before the first call, and the result is logged', { skip }, async (t) => {
  const said: string[] = [];
  const kernel: KernelDriver = { ...noKernelDriver, ensureLoaded: async () => 'loaded kernel modules' };
  const driver = open(t, { kernel, report: (note) => said.push(note) });
  t.ok((await driver.inventory()).notes.includes('loaded kernel modules'));
  t.ok(said.includes('loaded kernel modules'));
});

test('closing reports a call that will not return, because Node cannot exit then', { skip }, async (t) => {
  const driver = new NvidiaDriver({ libraryPaths: [oddLibrary], kernel: noKernelDriver });
  await driver.inventory();
  command('hang 0');
  await t.rejects(driver.sample(uuid(0)), { code: 'timeout' });
  await t.rejects(driver.close(), {
    code: 'timeout',
    message: 'calls to GPU 0 have not returned: Node cannot end by itself',
  });
  command();
  await eventually(
    () =>
      driver.close().then(
        () => true,
        () => false,
      ),
    'the call to return',
  );
});

test('a closed driver makes no calls and reports no events', { skip }, async (t) => {
  const driver = open(t);
  await driver.inventory();
  const { heard } = listen(driver);
  await driver.close();
  const other = open(t);
  await other.inventory();
  const { until } = listen(other);
  command('lost 0');
  await until(1);
  t.same(heard, []);
  await t.rejects(driver.inventory(), { code: 'unreachable', message: 'the driver is closed' });
});
