import { test, type Test } from 'tap';
import type { Notices } from '../../../../src/agent/allocator/ports.js';
import { NO_NOTICES } from '../../../../src/agent/allocator/no-pods.js';
import { SimulatedNode } from '../../../../src/simulation/simulated-node.js';
import { silentLog } from '../../../../src/host/log.js';
import { cards } from '../../gpus.js';
import { gpuIndexes, runPod } from '../../node.js';
import { simplePod } from '../../pods.js';
import { scratchDirectory } from '../../../scratch.js';
import { SimulatedMachine, notBuilt } from './simulated-machine.js';

const skip = notBuilt;

const MACHINE = new SimulatedMachine(cards(3));

/** The agent on the simulated libraries, called through NVML, and an emulated kubelet. */
async function startedNode(t: Test) {
  const told: string[] = [];
  const notices: Notices = {
    ...NO_NOTICES,
    gpuUnhealthy: (owners, _uuid, reason) => told.push(...owners.map((owner) => `${owner.pod}: ${reason}`)),
  };
  const node = new SimulatedNode({
    directory: await scratchDirectory(t),
    gpus: cards(3),
    log: silentLog(),
    seams: { driver: MACHINE.open(), notices },
  });
  await node.start();
  t.teardown(() => node.stop());
  const offers = (cores: number) => node.kubelet.until(() => node.kubelet.allocatable('core') === cores);
  return { node, told, offers };
}

test(
  'the kubelet sees a lost GPU as unhealthy, its pod gets an event, and new pods go elsewhere',
  { skip },
  async (t) => {
    const { node, told, offers } = await startedNode(t);
    await offers(300);
    const running = simplePod(30, 4);
    t.same(gpuIndexes(await runPod(node, running)), [0]);
    await MACHINE.order('lose', '0');
    await offers(200);
    t.match(told[0], new RegExp(`^${running.name}: `));
    t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [1]);
    t.match(await node.kubelet.admit(simplePod(300, 0)), { ok: false });
    await MACHINE.order('restore', '0');
  },
);

test('uncorrected memory errors make a GPU unhealthy, application errors do not', { skip }, async (t) => {
  const { node, told, offers } = await startedNode(t);
  await offers(300);
  t.same(gpuIndexes(await runPod(node, simplePod(50, 4))), [0]);
  await MACHINE.order('xid', '0', '31');
  await MACHINE.order('ecc', '1', 'uncorrected', '1');
  await offers(200);
  t.same(told, [], 'no pod is on that GPU');
  t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [0]);
  t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [2]);
});

test(
  'no GPU is offered while every call to the driver fails, and the GPUs are offered afterwards',
  { skip },
  async (t) => {
    const { node, offers } = await startedNode(t);
    await offers(300);
    // Codes of NVML: not initialised; the kernel driver is not loaded.
    await MACHINE.order('fault', 'nvmlDevice*', '1');
    await MACHINE.order('fault', 'nvmlInit*', '9');
    await offers(0);
    await MACHINE.order('clear');
    await offers(300);
    t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [0]);
  },
);
