import { test, type Test } from 'tap';
import { SimulatedNode } from '../../../../src/simulation/simulated-node.js';
import { noKernelDriver } from '../../../../src/agent/gpus/nvidia/kernel-driver.js';
import { NvidiaDriver } from '../../../../src/agent/gpus/nvidia/nvidia-driver.js';
import { silentLog } from '../../../../src/host/log.js';
import { cards } from '../../gpus.js';
import { gpuIndexes, runPod } from '../../node.js';
import { simplePod } from '../../pods.js';
import { scratchDirectory } from '../../../scratch.js';
import { command, noCompiler, oddLibrary } from './odd-library.js';

const skip = noCompiler;

/** The agent on two GPUs of the odd library, through FFI, and an emulated kubelet. */
async function startedNode(t: Test): Promise<SimulatedNode> {
  command('cards 2');
  const driver = new NvidiaDriver({ libraryPaths: [oddLibrary], kernel: noKernelDriver });
  const node = new SimulatedNode({
    directory: await scratchDirectory(t),
    gpus: cards(2),
    log: silentLog(),
    seams: { driver },
  });
  await node.start();
  t.teardown(async () => {
    await node.stop();
    command();
  });
  return node;
}

const offered = (node: SimulatedNode, cores: number) =>
  node.kubelet.until(() => node.kubelet.allocatable('core') === cores);

test(
  'the kubelet sees a GPU that falls off the bus as unhealthy, and pods go to the other GPU',
  { skip },
  async (t) => {
    const node = await startedNode(t);
    t.equal(node.kubelet.allocatable('core'), 200);
    command('cards 2', 'lost 0');
    await offered(node, 100);
    // The device nodes of the odd GPUs are in reverse order.
    t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [6]);
    t.same(gpuIndexes(await runPod(node, simplePod(70, 4))), [6]);
    t.match(await node.kubelet.admit(simplePod(30, 4)), { ok: false });
  },
);

test('an XID that needs a reset makes a GPU unhealthy, an XID of the application does not', { skip }, async (t) => {
  const node = await startedNode(t);
  command('cards 2', 'events 0 31');
  command('cards 2', 'events 0 31', 'events 1 48');
  await offered(node, 100);
  t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [7]);
});

test(
  'no GPU is offered while the driver is away, and the GPUs are offered again when it is back',
  { skip },
  async (t) => {
    const node = await startedNode(t);
    command('code 1', 'init 9');
    await offered(node, 0);
    command('cards 2');
    await offered(node, 200);
    t.same(gpuIndexes(await runPod(node, simplePod(30, 4))), [7]);
  },
);

test('an added GPU is offered without a restart', { skip }, async (t) => {
  const node = await startedNode(t);
  command('cards 3');
  await node.kubelet.until(
    () => node.kubelet.allocatable('core') === 300 && node.kubelet.allocatable('memory') === 3 * 64,
  );
  t.same(gpuIndexes(await runPod(node, simplePod(300, 0))), [7, 6, 5]);
});
