import { test } from 'tap';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import type { Notices } from '../../src/agent/allocator/ports.js';
import { NO_NOTICES } from '../../src/agent/no-pods.js';
import { cards } from './gpus.js';
import { gpuIndexes, runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';
import { until } from './slices/tenant.js';

function twoGpus(): SimDriver {
  const parsed = parseSimNode(cards(2));
  if (!parsed.ok) throw new Error(parsed.reason);
  return new SimDriver(parsed.node);
}

test('a GPU that falls off the bus is not offered any more, its pods hear of it, and it rests when it is back', async (t) => {
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
  t.same(gpuIndexes(await runPod(node, simplePod(30, 8))), [1], 'nothing new goes to the lost GPU');

  driver.find(uuid);
  t.equal(node.kubelet.allocatable('core'), 100, 'a GPU that came back rests before it is used again');
});

test('a whole GPU goes to a GPU that nobody uses, rather than to one with a process that is not ours', async (t) => {
  const driver = twoGpus();
  const first = (await driver.inventory()).gpus[0]?.uuid ?? '';
  driver.processes = async (uuid) =>
    uuid === first ? [{ pid: process.pid, usedMemoryBytes: 1 << 20, utilizationPercent: 0 }] : [];
  const node = await startedNode(t, { gpus: cards(2), seams: { driver }, config: { samplePeriodMs: 100 } });
  await until(() => node.agent.allocator.state.node.gpus[0]?.processCount === 1, 'the process to be seen');
  t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [1]);
  t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [0], 'it is the last one, and better than none');
});
