import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'tap';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import type { Notices } from '../../src/agent/allocator/ports.js';
import { NO_NOTICES } from '../../src/agent/allocator/no-pods.js';
import { cards } from './gpus.js';
import { gpuIndexes, runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';
import { eventually } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

const run = promisify(execFile);

function twoGpus(): SimDriver {
  const parsed = parseSimNode(cards(2));
  if (!parsed.ok) throw new Error(parsed.reason);
  return new SimDriver(parsed.node);
}

test('a GPU that falls off the bus is not offered, its pods get an event, and it is on probation when it is back', async (t) => {
  const driver = twoGpus();
  const told: string[] = [];
  const notices: Notices = {
    ...NO_NOTICES,
    gpuUnhealthy: (owners, uuid, reason) => told.push(`${owners.map((owner) => owner.pod).join()} ${uuid} ${reason}`),
  };
  const node = await startedNode(t, { gpus: cards(2), seams: { driver, notices } });
  const uuid = (await driver.inventory()).gpus[0]?.uuid ?? '';
  const running = simplePod(30, 8);
  t.same(gpuIndexes(await runPod(node, running)), [0]);

  driver.lose(uuid);
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 100);
  t.match(told, [new RegExp(`^${running.name} ${uuid} .+`)]);
  t.same(gpuIndexes(await runPod(node, simplePod(30, 8))), [1], 'no pod goes to the lost GPU');

  driver.find(uuid);
  t.equal(node.kubelet.allocatable('core'), 100, 'a GPU that came back is on probation before it is used again');
});

test('a request for a whole GPU prefers an unused GPU to one with a foreign process', async (t) => {
  const driver = twoGpus();
  const first = (await driver.inventory()).gpus[0]?.uuid ?? '';
  driver.processes = async (uuid) =>
    uuid === first ? [{ pid: process.pid, usedMemoryBytes: 1 << 20, utilizationPercent: 0 }] : [];
  const node = await startedNode(t, { gpus: cards(2), seams: { driver }, config: { samplePeriodMs: 100 } });
  await eventually(
    () => node.agent.allocator.state.node.gpus[0]?.processCount === 1,
    'the process to appear in the sample',
  );
  t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [1]);
  t.same(
    gpuIndexes(await runPod(node, simplePod(100, 0))),
    [0],
    'the last free GPU is used, in spite of its foreign process',
  );
});

test('the health of GPUs outlives the agent, until a reset, a boot or an operator ends it', async (t) => {
  const given = parseSimNode(cards(2));
  if (!given.ok) throw new Error(given.reason);
  let driver = new SimDriver(given.node);
  const seams = {
    get driver() {
      return driver;
    },
  };
  const node = await startedNode(t, { gpus: cards(2), seams });
  const [first = '', second = ''] = given.node.gpus.map(({ uuid }) => uuid);
  const restart = async (before: (next: SimDriver) => void = () => undefined): Promise<void> => {
    await node.stopAgent();
    driver = new SimDriver(given.node);
    before(driver);
    await node.startAgent();
  };
  const allocatable = (cores: number): Promise<void> =>
    node.kubelet.until(() => node.kubelet.allocatable('core') === cores);
  const command = (...args: string[]): Promise<string> =>
    run(process.execPath, [MAIN, 'health', ...args, '--display-socket', node.config.displaySocket]).then(
      ({ stdout }) => stdout,
    );

  driver.raiseXid(first, 48);
  driver.raiseXid(second, 79);
  await allocatable(0);
  await restart();
  t.equal(node.kubelet.allocatable('core'), 0, 'no GPU is offered after the restart either');
  t.match(await command(), /0 +GPU-\S+ +reset +\d+ s +- +XID 48 .*needs a reset/);

  await restart((next) => next.reset(first));
  t.match(await command(), /0 +GPU-\S+ +probation +\d+ s +in .* the GPU was reset/);
  t.match(await command(), /1 +GPU-\S+ +failed .*XID 79/, 'the other GPU was not reset');
  t.match(await command('clear', '1'), /1 +GPU-\S+ +healthy/);
  await allocatable(100);
  await restart();
  t.equal(node.kubelet.allocatable('core'), 100);
  t.match(await command(), /^\S+ +1 +failed +XID 79/m, 'the history is still shown');
  await t.rejects(command('clear', '7'), { code: 2, stderr: /no GPU 7 on this node/ });
});

test('a health history that cannot be read puts every GPU on probation', async (t) => {
  const node = await startedNode(t, { gpus: cards(2) });
  await node.stopAgent();
  await writeFile(join(node.config.checkpointPath, 'gpu-health.json'), '{"version":1,');
  await node.startAgent();
  t.equal(node.kubelet.allocatable('core'), 0);
});

test('the graph counts the memory of processes, as the original does, and not that of the driver', async (t) => {
  const driver = twoGpus();
  const second = (await driver.inventory()).gpus[1]?.uuid ?? '';
  const sample = driver.sample.bind(driver);
  driver.sample = async (uuid) => ({ ...(await sample(uuid)), usedMemoryBytes: 600 << 20 });
  driver.setLoad(second, {
    utilizationPercent: 10,
    processes: [
      { pid: process.pid, usedMemoryBytes: 3 << 20, utilizationPercent: 10 },
      { pid: process.ppid, usedMemoryBytes: 2 << 20, utilizationPercent: 0 },
    ],
  });
  const node = await startedNode(t, { gpus: cards(2), seams: { driver }, config: { samplePeriodMs: 100 } });
  const graph = async (): Promise<string> =>
    ((await (await fetch(`http://127.0.0.1:${node.agent.httpPort()}/graph`)).json()) as { graph: string }).graph;
  await eventually(
    () => node.agent.vgpu.observeGpus().filter(({ samples }) => samples > 0).length === 2,
    'the samples',
  );
  t.match(await graph(), /GPU0 \(pids: \[\], usedMemory: 0, /);
  t.match(await graph(), new RegExp(`GPU1 \\(pids: \\[\\d+ \\d+\\], usedMemory: ${5 << 20}, `));
});
