import { test } from 'tap';
import { node, plainNode, pod, type PodObject } from './objects.js';
import { predicted, start, type Rig } from './scheduler.js';

function annotated(name: string, wanted: readonly [number, number], annotations: Record<string, string>): PodObject {
  const plain = pod(name, [wanted]);
  return { ...plain, metadata: { ...plain.metadata, annotations } };
}

function gpusOf(rig: Rig, name: string): string {
  const found = [...rig.api.pods.values()].find(({ metadata }) => metadata?.name === name);
  return found === undefined ? '' : predicted(found);
}

test('a pod gets GPUs of the models and UUIDs that its annotations name, and refusals name the annotation', async (t) => {
  const rig = await start(t, [
    node('mixed', [16, 16], { models: ['Tesla T4', 'NVIDIA A10'] }),
    node('old', [16, 16]),
    node('new', [16], { models: ['NVIDIA A10'] }),
  ]);
  const names = [...rig.api.nodes.keys()];
  const filter = (wanted: PodObject) => {
    rig.api.setPod(wanted);
    return rig.scheduler.filter(wanted, names);
  };
  const a10 = annotated('a', [30, 4], { 'tencent.com/use-gpu-model': 'a10' });
  const answer = await filter(a10);
  t.same([...(answer.NodeNames ?? [])].sort(), ['mixed', 'new']);
  t.equal(
    answer.FailedAndUnresolvableNodes?.old,
    "node has no GPU that the pod's annotations allow (annotation tencent.com/use-gpu-model: A10)",
  );
  t.equal((await rig.scheduler.bind(a10, 'mixed')).Error, '');
  t.equal(gpusOf(rig, 'a'), '1', 'the T4 has the lower index');

  const large = annotated('b', [200, 0], { 'tencent.com/nouse-gpu-model': 'T4' });
  const refused = await filter(large);
  t.same(refused.NodeNames ?? [], []);
  t.match(
    refused.FailedAndUnresolvableNodes?.mixed,
    /too few.* for 2 whole GPUs \(annotation tencent\.com\/nouse-gpu-model: T4\)/,
  );

  const pinned = annotated('c', [80, 4], { 'tencent.com/use-gpu-uuid': 'GPU-mixed-1' });
  t.match((await filter(pinned)).FailedNodes?.mixed, /no room for 80 cores.* \(annotation tencent\.com\/use-gpu-uuid/);

  const wrong = annotated('d', [30, 4], { 'tencent.com/use-gpu-uuid': '1' });
  const said = await filter(wrong);
  t.match(JSON.stringify(said), /annotation tencent.com\/use-gpu-uuid has the entry/);
});

test('a GPU is for pods that share its time or for pods that share its multiprocessors, never for both', async (t) => {
  const rig = await start(t, [
    node('time', [16, 16]),
    node('sm', [16], { smGpus: [0] }),
    node('both', [16, 16], { smGpus: [0] }),
  ]);
  const names = [...rig.api.nodes.keys()];
  const filter = (wanted: PodObject) => {
    rig.api.setPod(wanted);
    return rig.scheduler.filter(wanted, names);
  };
  const inTime = annotated('a', [30, 4], {});
  const answer = await filter(inTime);
  t.same([...(answer.NodeNames ?? [])].sort(), ['both', 'time']);
  t.equal(
    answer.FailedAndUnresolvableNodes?.sm,
    'node shares the multiprocessors of its GPUs, which needs the annotation tencent.com/vcuda-compute: sm',
  );
  t.equal((await rig.scheduler.bind(inTime, 'both')).Error, '');
  t.equal(gpusOf(rig, 'a'), '1');
  const inSms = annotated('b', [30, 4], { 'tencent.com/vcuda-compute': 'sm' });
  const other = await filter(inSms);
  t.same([...(other.NodeNames ?? [])].sort(), ['both', 'sm']);
  t.equal(
    other.FailedAndUnresolvableNodes?.time,
    "node has no GPU that the pod's annotations allow (annotation tencent.com/vcuda-compute: sm)",
  );
  t.equal((await rig.scheduler.bind(inSms, 'both')).Error, '');
  t.equal(gpusOf(rig, 'b'), '0');
  const two = annotated('c', [200, 0], { 'tencent.com/vcuda-compute': 'sm' });
  t.match(JSON.stringify(await filter(two)), /for one GPU per container, but .* is on 2 GPUs/);
  const wrong = annotated('d', [30, 4], { 'tencent.com/vcuda-compute': 'sms' });
  t.match(JSON.stringify(await filter(wrong)), /vcuda-compute is .*sms.*it can be .*time.* or .*sm/);
});

test('room is kept for what pods ask for by a resize, where their node allows it and the GPU has it', async (t) => {
  const rig = await start(t, [node('n', [16], { allowsResize: true })]);
  const resized = (annotations: Record<string, string>): void => {
    const { metadata, spec } = annotated('running', [30, 4], {
      'tencent.com/predicate-gpu-idx-0': '0',
      ...annotations,
    });
    rig.api.setPod({ metadata: { ...metadata, uid: 'running' }, spec: { ...spec, nodeName: 'n' } });
  };
  const hasRoomFor = async (cores: number, blocks: number): Promise<boolean> => {
    const wanted = pod(`p${cores}-${blocks}`, [[cores, blocks]]);
    rig.api.setPod(wanted);
    const { NodeNames: offered } = await rig.scheduler.filter(wanted, ['n']);
    rig.api.deletePod(wanted.metadata?.name ?? '');
    return (offered ?? []).length > 0;
  };
  const status = (has: object): Record<string, string> => ({
    'tencent.com/vcuda-resize-status': JSON.stringify({ c0: has }),
  });
  const asked = { 'tencent.com/vcuda-core-resize': '60', 'tencent.com/vcuda-memory-resize': '8' };
  resized({});
  t.ok(await hasRoomFor(70, 12));
  resized(asked);
  t.notOk(await hasRoomFor(50, 8), 'it asks for 60 cores');
  t.notOk(await hasRoomFor(40, 9), 'it asks for 8 blocks');
  t.ok(await hasRoomFor(40, 8));
  rig.api.setNode(node('n', [16]));
  t.ok(await hasRoomFor(70, 12), 'the node does not allow it any more');
  rig.api.setNode(node('n', [16], { allowsResize: true }));
  t.notOk(await hasRoomFor(50, 8));
  resized({ 'tencent.com/vcuda-memory-resize': '99' });
  t.ok(await hasRoomFor(70, 12), 'what no GPU has is not kept');
  resized(status({ cores: 100, memoryBlocks: 16 }));
  t.ok(await hasRoomFor(70, 12), 'the author of the pod may have written the status');
  const infeasible = {
    cores: 30,
    memoryBlocks: 4,
    pending: { reason: 'Infeasible', asked: { cores: 60, memoryBlocks: 8 } },
  };
  resized({ ...asked, ...status(infeasible) });
  t.notOk(await hasRoomFor(50, 8), 'nor is room given up by a status');
});

test('the policies of a pod go before those of the extender and of the node', async (t) => {
  const rig = await start(t, [node('busy', [16, 16]), node('idle', [16, 16])], { offer: 'best', policy: 'binpack' });
  const names = [...rig.api.nodes.keys()];
  const schedule = async (wanted: PodObject): Promise<readonly string[]> => {
    rig.api.setPod(wanted);
    const { NodeNames: offered = [] } = await rig.scheduler.filter(wanted, names);
    t.equal((await rig.scheduler.bind(wanted, offered?.[0] ?? '')).Error, '');
    return offered ?? [];
  };
  const first = await schedule(pod('first', [[30, 4]]));
  const [busy = ''] = first;
  t.same(await schedule(annotated('packed', [30, 4], {})), [busy]);
  t.equal(gpusOf(rig, 'packed'), gpusOf(rig, 'first'), 'both are on one GPU');
  const idle = names.filter((name) => name !== busy);
  t.same(await schedule(annotated('apart', [30, 4], { 'tencent.com/node-policy': 'spread' })), idle);
  const onBusy = { 'tencent.com/gpu-policy': 'spread', 'tencent.com/node-policy': 'binpack' };
  t.same(await schedule(annotated('other-gpu', [30, 4], onBusy)), [busy]);
  t.not(gpusOf(rig, 'other-gpu'), gpusOf(rig, 'first'));
});

test('an almost right key of an annotation is refused with the right one', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  const said = await rig.scheduler.filter(annotated('p', [30, 4], { 'tencent.com/use-gpu-modle': 'T4' }), ['n']);
  t.match(
    said.FailedAndUnresolvableNodes?.n,
    /annotation tencent.com\/use-gpu-modle .* write tencent.com\/use-gpu-model/,
  );
});

test('a whole GPU with more memory than it has is refused on a node without inventory, too', async (t) => {
  const rig = await start(t, [plainNode('n', 200, 32)]);
  t.same((await rig.scheduler.filter(pod('large', [[100, 17]]), ['n'])).NodeNames, []);
  t.same((await rig.scheduler.filter(pod('fits', [[100, 16]]), ['n'])).NodeNames, ['n']);
  t.same((await rig.scheduler.filter(pod('both', [[200, 32]]), ['n'])).NodeNames, []);
});

test('on a node without inventory a whole GPU may be larger than the others, where a label shows that they differ', async (t) => {
  const labelled = (name: string, cores: number, blocks: number, mebibytes: number) =>
    plainNode(name, cores, blocks, {
      labels: { 'kubernetes.io/hostname': name, 'nvidia.com/gpu.memory': String(mebibytes) },
    });
  const GIB = 1024;
  const nodes = [
    labelled('small-first', 200, 96 * 4, 16 * GIB),
    labelled('large-first', 200, 96 * 4, 80 * GIB),
    labelled('three', 300, 112 * 4, 16 * GIB),
    labelled('equal', 200, 2 * 63, 16_160),
    labelled('nonsense', 200, 96 * 4, 1e9),
  ];
  const names = nodes.map(({ metadata }) => metadata?.name ?? '');
  for (const [gib, expected] of [
    [15.5, names],
    [40, ['small-first', 'large-first', 'three', 'nonsense']],
    [70, ['small-first', 'large-first', 'three']],
    [80, ['small-first', 'large-first', 'three']],
    [80.25, []],
  ] as const) {
    const rig = await start(t, nodes);
    t.same((await rig.scheduler.filter(pod('p', [[100, gib * 4]]), names)).NodeNames, expected, `${gib} GiB`);
  }
});

test('a request that is divided over several GPUs gets parts of them, beside the pods that are there', async (t) => {
  const rig = await start(t, [node('two', [16, 16]), node('one', [32]), node('small', [7, 16])]);
  const names = [...rig.api.nodes.keys()];
  const filter = (wanted: PodObject) => {
    rig.api.setPod(wanted);
    return rig.scheduler.filter(wanted, names);
  };
  const onTwo = { 'tencent.com/vcuda-gpus': '2' };
  const first = annotated('a', [100, 16], onTwo);
  const answer = await filter(first);
  t.same(answer.NodeNames, ['two']);
  t.match(
    answer.FailedAndUnresolvableNodes,
    { one: /too few.* for 50 cores with 8 memory blocks on each of 2 GPUs \(annotation tencent\.com\/vcuda-gpus: 2\)/ },
    'one large GPU does not serve',
  );
  t.ok('small' in (answer.FailedAndUnresolvableNodes ?? {}), 'each GPU needs the memory');
  t.equal((await rig.scheduler.bind(first, 'two')).Error, '');
  t.equal(gpusOf(rig, 'a'), '0,1');
  const second = annotated('b', [100, 16], onTwo);
  t.same((await filter(second)).NodeNames, ['two']);
  t.equal((await rig.scheduler.bind(second, 'two')).Error, '', 'the other halves');
  t.equal(gpusOf(rig, 'b'), '0,1');
  const third = annotated('c', [2, 2], onTwo);
  t.match((await filter(third)).FailedNodes?.two, /no room for 1 cores with 1 memory blocks on each of 2 GPUs/);

  const said = async (name: string, wanted: readonly [number, number], gpus = '2'): Promise<string> =>
    JSON.stringify(await filter(annotated(name, wanted, { 'tencent.com/vcuda-gpus': gpus })));
  t.match(await said('d', [75, 16]), /vcuda-core: 75 cannot be divided evenly over 2 GPUs; ask for a multiple of 2/);
  t.match(await said('e', [300, 16]), /vcuda-core: 300 is more than 2 whole GPUs/);
  t.match(await said('f', [100, 0]), /50 is a part of a GPU and needs tencent.com\/vcuda-memory/);
  t.match(await said('g', [100, 16], '0'), /it can be a number of GPUs from 1 to 16/);
});

test('a restarted extender charges both halves of a pod whose annotations name them', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const { metadata, spec } = annotated('running', [100, 16], {
    'tencent.com/vcuda-gpus': '2',
    'tencent.com/predicate-gpu-idx-0': '0,1',
    'tencent.com/predicate-node': 'n',
  });
  rig.api.setPod({ metadata: { ...metadata, uid: 'running' }, spec: { ...spec, nodeName: 'n' } });
  const fits = async (name: string, cores: number): Promise<number> => {
    const wanted = pod(name, [[cores, 4]]);
    rig.api.setPod(wanted);
    const { NodeNames: offered } = await rig.scheduler.filter(wanted, ['n']);
    rig.api.deletePod(name);
    return (offered ?? []).length;
  };
  t.equal(await fits('half', 50), 1);
  t.equal(await fits('more', 51), 0);
});

test('the containers of a pod may have parts of different numbers of GPUs', async (t) => {
  const rig = await start(t, [node('two', [16, 16])]);
  const wanted = pod('p', [
    [100, 16],
    [50, 4],
  ]);
  const divided = { ...wanted, metadata: { ...wanted.metadata, annotations: { 'tencent.com/vcuda-gpus': 'c0=2' } } };
  rig.api.setPod(divided);
  t.same((await rig.scheduler.filter(divided, ['two'])).NodeNames, ['two']);
  t.equal((await rig.scheduler.bind(divided, 'two')).Error, '');
  t.match(gpusOf(rig, 'p'), /^0,1 \| [01]$/);
});
