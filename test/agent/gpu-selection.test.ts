import { test } from 'tap';
import { eventually } from '../harness/eventually.js';
import { startedCluster } from './cluster.js';
import { admitted, gpuIndexes, only } from './node.js';
import { simplePod } from './pods.js';

const gpus = JSON.stringify({
  gpus: [{ model: 'Tesla T4' }, { model: 'Tesla T4' }, { model: 'NVIDIA A10' }, { model: 'NVIDIA A10' }],
});

test('without an extender, the agent follows the annotations that choose GPUs, and refuses wrong ones', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const admit = async (annotations: Readonly<Record<string, string>>, cores = 30) => {
    const wanted = simplePod(cores, 16);
    cluster.submit(wanted, { annotations });
    await cluster.known(wanted);
    return { wanted, admission: await cluster.admit(wanted) };
  };
  const indexes = async (annotations: Readonly<Record<string, string>>, cores = 30) =>
    gpuIndexes(only(admitted((await admit(annotations, cores)).admission)));
  t.same(await indexes({ 'tencent.com/use-gpu-model': 'a10' }), [2]);
  t.same(await indexes({ 'tencent.com/use-gpu-model': 'a10' }), [2], 'the fullest GPU with room');
  t.same(await indexes({ 'tencent.com/use-gpu-model': 'a10', 'tencent.com/gpu-policy': 'spread' }), [3]);
  t.same(await indexes({ 'tencent.com/nouse-gpu-model': 'A10' }, 200), [0, 1]);
  const refused = await admit({ 'tencent.com/use-gpu-model': 'H100' });
  t.match(refused.admission, {
    ok: false,
    message: /none may be chosen.*annotation tencent\.com\/use-gpu-model: H100/,
  });
  const wrong = await admit({ 'tencent.com/gpu-policy': 'pack' });
  t.match(wrong.admission, {
    ok: false,
    message: /annotation tencent\.com\/gpu-policy is "pack"; it can be "binpack"/,
  });
  const misspelt = await admit({ 'tencent.com/use-gpu-modle': 'A10' });
  t.match(misspelt.admission, {
    ok: false,
    message: /annotation tencent\.com\/use-gpu-modle has no meaning; write tencent\.com\/use-gpu-model/,
  });
  t.match(await eventually(() => cluster.eventsOn(wrong.wanted)[0]), {
    reason: 'GPURefused',
    message: /annotation tencent\.com\/gpu-policy is "pack"/,
  });
});

test('a pod that got the GPU of another pod, which its annotations do not allow, does not start', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const [first, second] = [simplePod(30, 16), simplePod(30, 16)];
  cluster.submit(first, {
    annotations: { 'tencent.com/use-gpu-model': 'A10', 'tencent.com/predicate-time': '1' },
  });
  cluster.submit(second, {
    annotations: { 'tencent.com/use-gpu-model': 'T4', 'tencent.com/predicate-time': '2' },
  });
  await cluster.known(second);
  const given = only(admitted(await cluster.admit(second)));
  t.same(gpuIndexes(given), [2], 'the agent took the request for that of the first pod');
  await t.rejects(
    cluster.node.kubelet.startContainer(second.uid, 'main'),
    /got GPU 2 \(NVIDIA A10, GPU-.*\), which its annotations do not allow \(annotation tencent\.com\/use-gpu-model: T4\)/,
  );
});
