import { test } from 'tap';
import type { FilterResult } from '../../src/scheduler/results.js';
import { node, plainNode, pod, type NodeObject, type PodObject } from './objects.js';
import { post, settle, start, type Rig } from './scheduler.js';

/** A simulator of an autoscaler asks about whole nodes: some exist, and some are built from a node group's template. */
async function simulate(
  { url }: Rig,
  wanted: PodObject,
  nodes: readonly NodeObject[],
): Promise<{ fits: readonly (string | undefined)[]; failed: Readonly<Record<string, string>>; error: string }> {
  const answer = await post<Omit<FilterResult, 'Nodes'> & { Nodes: { items: NodeObject[] } | null }>(
    `${url}/scheduler/predicates`,
    { Pod: wanted, Nodes: { metadata: {}, items: nodes }, NodeNames: null },
  );
  const fits = (answer.Nodes?.items ?? []).map(({ metadata }) => metadata?.name);
  return { fits, failed: answer.FailedNodes, error: answer.Error };
}

const T4 = { labels: { 'gaia.tencent.com/gpu-product': 'Tesla-T4', 'gaia.tencent.com/gpu-model': 'T4' } };

test('a node that does not exist is judged by the capacity of its template', async (t) => {
  const rig = await start(t, [node('real', [64])]);
  const template = plainNode('template-node-for-gpus-1', 200, 128, T4);
  const cpuOnly = plainNode('template-node-for-cpus-1', 0, 0);
  const ask = (wanted: PodObject) => simulate(rig, wanted, [template, cpuOnly]);
  t.same(await ask(pod('part', [[60, 32]])), {
    fits: ['template-node-for-gpus-1'],
    failed: { 'template-node-for-cpus-1': 'node has no GPU to share' },
    error: '',
  });
  t.match(await ask(pod('whole', [[200, 128]])), { fits: ['template-node-for-gpus-1'] });
  t.match(await ask(pod('large', [[60, 100]])), {
    fits: [],
    failed: { 'template-node-for-gpus-1': /^GPUs are too few, too small or unhealthy for 60 cores with 100 memory/ },
  });
  t.match(await ask(pod('three', [[300, 0]])), { fits: [] });
  const parts = pod('parts', [
    [60, 16],
    [60, 16],
    [60, 16],
  ]);
  t.match(await ask(parts), { fits: [] }, 'three parts of 60 cores are within 200 cores, but not on two GPUs');
});

test('the labels of a template say its model', async (t) => {
  const rig = await start(t, []);
  const of = (key: string, value: string): PodObject => {
    const made = pod('chooser', [[30, 4]]);
    return { ...made, metadata: { ...made.metadata, annotations: { [key]: value } } };
  };
  const template = plainNode('template', 100, 64, T4);
  t.match(await simulate(rig, of('tencent.com/use-gpu-model', 't4'), [template]), { fits: ['template'] });
  t.match(await simulate(rig, of('tencent.com/nouse-gpu-model', 'T4'), [template]), { fits: [] });
  t.match(await simulate(rig, of('tencent.com/use-gpu-model', 'A100'), [template]), { fits: [] });
  const { labels, ...noLabels } = { ...template.metadata };
  t.ok(labels);
  t.match(
    await simulate(rig, of('tencent.com/use-gpu-model', 'T4'), [{ ...template, metadata: noLabels }]),
    { fits: [] },
    'without the labels no model is known',
  );
});

test('a template that is a copy of a full node is empty, and has no GPU of a known UUID', async (t) => {
  const full = node('full', [64, 64], { freeCores: [0, 40] });
  const rig = await start(t, [full]);
  t.equal(await settle(rig, pod('there', [[40, 4]])), 'full: 1');
  const copy = { ...full, metadata: { ...full.metadata, name: 'template-node-for-group-2' } };
  const wanted = pod('new', [[200, 0]]);
  t.match(await simulate(rig, wanted, [full, copy]), { fits: ['template-node-for-group-2'] });
  const pinned = {
    ...wanted,
    metadata: { ...wanted.metadata, annotations: { 'tencent.com/use-gpu-uuid': 'GPU-full-0' } },
  };
  t.match(await simulate(rig, pinned, [copy]), { fits: [] });
  const failed = node('failed', [64, 64], { unhealthy: [1] });
  t.match(await simulate(rig, wanted, [{ ...failed, metadata: { ...failed.metadata, name: 'copy' } }]), { fits: [] });
});

test('a simulation reserves nothing, and keeps the room that its pod has', async (t) => {
  const rig = await start(t, [node('real', [64])], { settleTimeoutMs: 50 });
  const template = plainNode('template', 100, 64);
  const [real] = [...rig.api.nodes.values()] as [NodeObject];
  const first = pod('first', [[100, 0]]);
  const second = pod('second', [[100, 0]]);
  for (const one of [first, second]) {
    rig.api.setPod(one);
    t.same((await simulate(rig, one, [real, template])).fits, ['real', 'template']);
  }
  t.same((await rig.scheduler.filter(second, ['real'])).NodeNames, ['real'], 'the room is free for any pod');
  t.match((await simulate(rig, second, [template])).fits, ['template']);
  t.match(
    (await rig.scheduler.filter(first, ['real'])).FailedNodes,
    { real: /is reserved for pods that are being placed/ },
    'what the scheduler was offered stays reserved',
  );
  t.equal((await rig.scheduler.bind(second, 'real')).Error, '');
});

test('a simulation of a pod without UID is answered', async (t) => {
  const rig = await start(t, []);
  const made = pod('p', [[100, 0]]);
  const { uid, ...unnamed } = { ...made.metadata };
  t.ok(uid);
  t.match(await simulate(rig, { ...made, metadata: unnamed }, [plainNode('template', 100, 64)]), {
    fits: ['template'],
  });
});

test('a name alone, and more templates than the limit, are refused as unknown nodes', async (t) => {
  const rig = await start(t, []);
  const wanted = pod('p', [[100, 0]]);
  t.same((await rig.scheduler.filter(wanted, ['template'])).FailedNodes, { template: 'node is not known (yet)' });
  const many = Array.from({ length: 70 }, (_, at) => plainNode(`t${at}`, 100, 64));
  const { fits, failed } = await simulate(rig, wanted, many);
  t.equal(fits.length, 64);
  t.equal(failed.t69, 'node is not known (yet)');
  const [first] = many as [NodeObject];
  const large = { ...first, metadata: { ...first.metadata, annotations: { note: 'x'.repeat(3 << 20) } } };
  t.match(await simulate(rig, wanted, [large]), { fits: [] });
});
