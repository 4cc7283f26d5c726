import { existsSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import type { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import { SimDriver as Simulated } from '../../src/agent/gpus/sim/sim-driver.js';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { packageFile } from '../../src/host/package-files.js';
import { systemClock } from '../../src/host/clock.js';
import { DemoPrograms } from '../../src/simulation/demo-programs.js';
import { scratchDirectory } from '../scratch.js';
import { limitsOf, only, admitted, runPod, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

const A100 = { model: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960, multiprocessors: 108, computeCapability: '8.0' };
/** Instances of 20, 10 and 5 GB on GPU 0 of two. */
const DIVIDED = JSON.stringify({ gpus: [{ ...A100, mig: ['3g.20gb', '2g.10gb', '1g.5gb'] }, A100] });
const [MIDDLE, SMALL] = [6, 0xe].map(
  (first) => `MIG-${first.toString(16).padStart(2, '0')}000000-0000-0000-0000-000000000000`,
);
const WHOLE = 'GPU-00000001-0000-0000-0000-000000000001';

type Teardown = Parameters<typeof startedNode>[0];

/** A node whose GPUs are simulated in its own process. */
async function dividedNode(t: Teardown, migStrategy: 'shared' | 'whole') {
  const parsed = parseSimNode(DIVIDED);
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver: SimDriver = new Simulated(parsed.node, systemClock, true);
  const node = await startedNode(t, { gpus: DIVIDED, config: { migStrategy }, seams: { driver }, knowsPods: true });
  return { node, driver };
}

const visible = (given: { readonly environment: Readonly<Record<string, string>> }): string | undefined =>
  given.environment['NVIDIA_VISIBLE_DEVICES'];

test('two pods share an instance: they get its device nodes only, and limits that name it', async (t) => {
  const { node } = await dividedNode(t, 'shared');
  t.equal(node.kubelet.allocatable('core'), 400, 'three instances and the undivided GPU');
  const one = await runPod(node, simplePod(30, 4));
  const two = await runPod(node, simplePod(40, 4));
  t.same([visible(one), visible(two)], [SMALL, SMALL], 'the instance with the least memory is used first');
  const names = one.deviceNodes.map(({ containerPath }) => containerPath).sort();
  t.same(names, [
    '/dev/nvidia-caps/nvidia-cap120',
    '/dev/nvidia-caps/nvidia-cap121',
    '/dev/nvidia-uvm',
    '/dev/nvidia0',
    '/dev/nvidiactl',
  ]);
  t.equal(one.annotations['tencent.com/vcuda-device'], '/dev/nvidia0');
  const { devices } = await limitsOf(one);
  t.match(devices, [{ uuid: SMALL, share: 30 }]);
  const base = `http://127.0.0.1:${node.agent.httpPort()}`;
  t.match(
    await (await fetch(`${base}/metrics`)).text(),
    `vgpu_gpu_mig_info{gpu="4",uuid="${SMALL}",profile="1g.5gb",parent_uuid="GPU-00000000-0000-0000-0000-000000000000",gpu_instance="13",compute_instance="0"} 1`,
  );
});

test('requests for whole GPUs use undivided GPUs first, and never a set of instances', async (t) => {
  const { node } = await dividedNode(t, 'shared');
  t.match(await node.kubelet.admit(simplePod(200, 0)), {
    ok: false,
    message: /asked for 2 whole GPUs; 1 of 4 is free .*MIG instances serve one GPU each/u,
  });
  const first = await runPod(node, simplePod(100, 0));
  const second = await runPod(node, simplePod(100, 30));
  const third = await runPod(node, simplePod(100, 0));
  t.same([first, second, third].map(visible), [WHOLE, MIDDLE, SMALL], 'the instance with the least sufficient memory');
});

test('an XID of the GPU makes all its instances unhealthy, and pods go elsewhere', async (t) => {
  const { node, driver } = await dividedNode(t, 'shared');
  driver.raiseXid('GPU-00000000-0000-0000-0000-000000000000', 79);
  await node.kubelet.until(() => node.kubelet.allocatable('core') === 100);
  const given = await runPod(node, simplePod(10, 4));
  t.equal(visible(given), WHOLE);
});

test('a pod gets a whole instance by its profile, and cores never come from instances', async (t) => {
  const node = await startedNode(t, { gpus: DIVIDED, config: { migStrategy: 'whole' }, knowsPods: true });
  const small = 'tencent.com/mig-1g.5gb';
  await node.kubelet.until(() => node.kubelet.allocatable(small) === 1 && node.kubelet.allocatable('core') === 100);
  const wanted = pod([{ ...container('main', 0, 0), instances: { [small]: 1 } }]);
  const given = await runPod(node, wanted);
  t.equal(visible(given), SMALL);
  t.ok(given.deviceNodes.some(({ containerPath }) => containerPath === '/dev/nvidia-caps/nvidia-cap120'));
  const [held] = [...node.agent.allocator.state.allocations.values()];
  t.match(held, { phase: 'started', owners: [{ podUid: wanted.uid, container: 'main' }], parts: [{ gpuUuid: SMALL }] });
  t.same(
    (await limitsOf(given)).devices.map(({ uuid, memoryBytes, share }) => ({ uuid, memoryBytes, share })),
    [{ uuid: SMALL, memoryBytes: null, share: 100 }],
  );
  const another = pod([{ ...container('main', 0, 0), instances: { [small]: 1 } }]);
  t.match(await node.kubelet.admit(another), { ok: false, message: /unavailable for tencent.com\/mig-1g.5gb/u });
  t.equal(visible(await runPod(node, simplePod(30, 4))), WHOLE);

  await node.stopAgent();
  await rm(node.config.checkpointPath, { recursive: true });
  await node.startAgent();
  await node.agent.allocator.reconcile();
  const after = [...node.agent.allocator.state.allocations.values()];
  const again = after.find(({ parts }) => parts.some(({ gpuUuid }) => gpuUuid === SMALL));
  t.same(
    [again?.id, again?.phase, again?.owners],
    [held?.id, held?.phase, held?.owners],
    'known from the record of the kubelet',
  );

  node.kubelet.remove(wanted.uid);
  await node.agent.allocator.reconcile();
  t.equal(visible(await runPod(node, pod([{ ...container('main', 0, 0), instances: { [small]: 1 } }]))), SMALL);
});

test('an error of a whole instance makes that instance unhealthy, and no other', async (t) => {
  const { node, driver } = await dividedNode(t, 'whole');
  await node.kubelet.until(() => node.kubelet.allocatable('tencent.com/mig-1g.5gb') === 1);
  driver.raiseXid(SMALL ?? '', 79);
  await node.kubelet.until(() => node.kubelet.allocatable('tencent.com/mig-1g.5gb') === 0);
  t.equal(node.kubelet.allocatable('tencent.com/mig-3g.20gb'), 1);
});

const isBuilt =
  existsSync(packageFile('native/build/sim/libnvidia-ml.so.1')) && existsSync(packageFile('native/build/gpu-probe'));
const skip = isBuilt ? false : 'the simulated driver is not built (npm run native)';

test(
  'programs of two pods on one instance are limited to their memory, and see no other instance',
  { skip },
  async (t) => {
    const directory = await scratchDirectory(t);
    const [nodePath, statePath] = [join(directory, 'machine.json'), join(directory, 'machine')];
    writeFileSync(nodePath, DIVIDED);
    const node = await startedNode(t, {
      gpus: DIVIDED,
      config: {
        migStrategy: 'shared',
        simNodePath: nodePath,
        simStatePath: statePath,
        nativePath: packageFile('native/build'),
      },
      knowsPods: true,
    });
    const programs = new DemoPrograms(statePath, nodePath);
    t.teardown(() => programs.end());
    const one = await runPod(node, simplePod(30, 4));
    const two = await runPod(node, simplePod(40, 8));
    t.same([visible(one), visible(two)], [SMALL, SMALL]);
    t.same(await Promise.all([programs.run(one, ['total']), programs.run(two, ['total'])]), [
      'total 1024',
      'total 2048',
    ]);
    const most = Number(/^memory (\d+) result 2$/u.exec(await programs.run(one, ['memory']))?.[1]);
    t.ok(most > 512 && most <= 1024, `${most} MiB of 1024`);
    const whole = only(admitted(await node.kubelet.admit(simplePod(100, 60))));
    t.equal(visible(whole), WHOLE);
  },
);
