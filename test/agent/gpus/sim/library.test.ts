import { once } from 'node:events';
import { test } from 'tap';
import { DriverError, type Driver, type DriverEvent } from '../../../../src/agent/gpus/driver.js';
import { eventually } from '../../../harness/eventually.js';
import { driverContract } from '../contract.js';
import { SimulatedMachine, noCompiler, notBuilt } from './simulated-machine.js';

const skip = notBuilt;

/** Two bridged GPUs and two behind one switch, unequal. */
const MACHINE = new SimulatedMachine(
  JSON.stringify({
    driverVersion: '570.11',
    cudaVersion: 12080,
    gpus: [
      {
        model: 'NVIDIA A100-SXM4-40GB',
        memoryMiB: 40_960,
        multiprocessors: 108,
        computeCapability: '8.0',
        numaNode: 0,
      },
      {
        model: 'NVIDIA A100-SXM4-40GB',
        memoryMiB: 40_960,
        multiprocessors: 108,
        computeCapability: '8.0',
        numaNode: 0,
      },
      { model: 'Tesla T4', memoryMiB: 15_360, multiprocessors: 40, computeCapability: '7.5', numaNode: 1, minor: 5 },
      { model: 'Tesla T4', memoryMiB: 15_360, multiprocessors: 40, computeCapability: '7.5', numaNode: 1, minor: 7 },
    ],
    links: [
      ['X', 'NV4', 'SYS', 'SYS'],
      ['NV4', 'X', 'SYS', 'SYS'],
      ['SYS', 'SYS', 'X', 'PIX'],
      ['SYS', 'SYS', 'PIX', 'X'],
    ],
  }),
);

const uuid = (at: number): string => MACHINE.node.gpus[at]?.uuid ?? '';

function listen(driver: Driver) {
  const heard: DriverEvent[] = [];
  driver.subscribe((event) => heard.push(event));
  const until = async (count: number): Promise<readonly DriverEvent[]> => {
    await eventually(() => heard.length >= count, `${count} events`);
    return heard.slice(0, count);
  };
  return { heard, until };
}

if (skip === false) driverContract('the simulated libraries, through NVML', async () => MACHINE.open());

test('the driver describes the GPUs as NVML does', { skip }, async (t) => {
  const driver = MACHINE.open();
  t.equal(driver.name, 'sim');
  const inventory = await driver.inventory();
  await driver.close();
  t.equal(inventory.driverVersion, '570.11');
  t.equal(inventory.cudaVersion, 12080);
  const facts = ({
    index,
    minor,
    uuid: id,
    pciBusId,
    model,
    memoryBytes,
    numaNode,
    computeCapability,
  }: (typeof inventory.gpus)[number]) => ({
    index,
    minor,
    id,
    pciBusId,
    model,
    memoryBytes,
    numaNode,
    computeCapability,
  });
  t.same(inventory.gpus.map(facts), MACHINE.node.gpus.map(facts));
  t.same(inventory.topology.nvlinks, MACHINE.node.topology.nvlinks);
  t.equal(inventory.topology.levels[2]?.[3], 'PIX');
  t.equal(inventory.topology.levels[0]?.[2], 'SYS');
  t.match(inventory.notes, [/^unequal GPUs: NVIDIA A100-SXM4-40GB \(40.0 GiB\), Tesla T4 \(15.0 GiB\)/]);
});

test(
  'a program on a GPU appears as a process, with its memory and its share of the time',
  { skip: skip || noCompiler },
  async (t) => {
    const driver = MACHINE.open();
    t.same(await driver.processes(uuid(0)), []);
    const program = MACHINE.startProgram(t);
    const seen = async () => (await driver.processes(uuid(0))).find((entry) => entry.pid === program.pid);
    const found = await eventually(async () => {
      const process = await seen();
      return (process?.utilizationPercent ?? 0) >= 50 && process;
    }, 'half of the time of the GPU');
    t.match(found, { pid: program.pid, usedMemoryBytes: Number, utilizationPercent: Number });
    t.ok((found?.usedMemoryBytes ?? 0) >= 64 * 1024 * 1024);
    t.ok((found?.utilizationPercent ?? 0) >= 50, `${found?.utilizationPercent} percent`);
    t.ok(((await driver.sample(uuid(0))).usedMemoryBytes ?? 0) >= 64 * 1024 * 1024);
    t.same(await driver.processes(uuid(1)), [], 'the other GPU is idle');
    await driver.close();
  },
);

test(
  'a program that has ended is no process, although its use is still reported, and hides no other',
  { skip: skip || noCompiler },
  async (t) => {
    const driver = MACHINE.open();
    const [first, second] = [MACHINE.startProgram(t), MACHINE.startProgram(t)];
    const busy = async () =>
      (await driver.processes(uuid(0))).filter((entry) => (entry.utilizationPercent ?? 0) > 10).map(({ pid }) => pid);
    await eventually(async () => (await busy()).length === 2, 'both programs are busy');
    first.kill('SIGKILL');
    await once(first, 'exit');
    const left = await driver.processes(uuid(0));
    t.same(
      left.map(({ pid }) => pid),
      [second.pid],
    );
    t.ok((left[0]?.utilizationPercent ?? 0) > 10, `${left[0]?.utilizationPercent} percent`);
    await driver.close();
  },
);

test('injected errors of the machine arrive', { skip }, async (t) => {
  const driver = MACHINE.open({ tickMs: 20 });
  await driver.inventory();
  const { until } = listen(driver);
  await MACHINE.order('xid', '1', '31');
  t.same(await until(1), [{ kind: 'xid', uuid: uuid(1), xid: 31 }]);
  await MACHINE.order('ecc', '2', 'uncorrected', '1');
  t.same((await until(2))[1], { kind: 'ecc', uuid: uuid(2) });
  await driver.close();
});

test('a GPU that falls off the bus is lost with its XID, and found when it is back', { skip }, async (t) => {
  const driver = MACHINE.open({ tickMs: 20 });
  await driver.inventory();
  const { heard, until } = listen(driver);
  await MACHINE.order('lose', '3');
  const events = await until(2);
  t.ok(events.some((event) => event.kind === 'lost' && event.uuid === uuid(3)));
  await t.rejects(driver.sample(uuid(3)), { code: 'gpu-lost' });
  await MACHINE.order('restore', '3');
  await eventually(() => heard.at(-1)?.kind === 'found', 'the GPU to be found');
  t.same(heard.at(-1), { kind: 'found', uuid: uuid(3) });
  await driver.close();
});

for (const [call, code, survives] of [
  ['nvmlDeviceGetUtilizationRates', 'not-supported', { utilizationPercent: null }],
  ['nvmlDeviceGetUtilizationRates', 'unknown', { utilizationPercent: null }],
  ['nvmlDeviceGetPowerUsage', 'no-permission', { powerMilliwatts: null }],
  ['nvmlDeviceGetTemperature', 'unknown', { temperatureCelsius: null }],
] as const) {
  test(`${call} that returns ${code} loses its own figure only`, { skip }, async (t) => {
    await MACHINE.order('fault', call, code);
    const driver = MACHINE.open();
    t.match(await driver.sample(uuid(0)), { ...survives, usedMemoryBytes: Number });
    await driver.close();
    await MACHINE.order('clear');
  });
}

test('the driver answers or gives the reason, and works again afterwards, whatever calls fail', { skip }, async (t) => {
  const calls = [
    'nvmlInit*',
    'nvmlDeviceGetCount*',
    'nvmlDeviceGetHandleByIndex*',
    'nvmlDeviceGetUUID',
    'nvmlDeviceGetName',
    'nvmlDeviceGetMinorNumber',
    'nvmlDeviceGetPciInfo*',
    'nvmlDeviceGetMemoryInfo',
    'nvmlDeviceGetMigMode',
    'nvmlDeviceGetEccMode',
    'nvmlDeviceGetMemoryAffinity',
    'nvmlDeviceGetTopologyCommonAncestor',
    'nvmlDeviceGetNvLink*',
    'nvmlEventSet*',
    'nvmlDeviceRegisterEvents',
    'nvmlDeviceGetComputeRunningProcesses*',
    'nvmlDeviceGetProcessUtilization',
    'nvmlSystemGet*',
    'nvmlDeviceGetTotalEccErrors',
    'nvmlDeviceGet*',
  ];
  let answered = 0;
  for (const call of calls) {
    for (const code of ['not-supported', 'unknown', 'lost', 'no-permission', 'timeout']) {
      await MACHINE.order('fault', call, code);
      const driver = MACHINE.open();
      const answers = await Promise.allSettled([driver.inventory(), driver.sample(uuid(0)), driver.processes(uuid(0))]);
      for (const answer of answers) {
        if (answer.status === 'rejected' && !(answer.reason instanceof DriverError))
          t.fail(`${call} ${code}: ${(answer.reason as Error).message}`);
      }
      answered += answers.filter((answer) => answer.status === 'fulfilled').length;
      await driver.close();
      await MACHINE.order('clear');
    }
  }
  t.ok(answered > calls.length * 5, `${answered} answers in spite of faults`);
  const driver = MACHINE.open();
  t.equal((await driver.inventory()).gpus.length, 4);
  await driver.close();
});
