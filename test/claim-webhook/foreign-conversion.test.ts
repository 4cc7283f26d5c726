import { test } from 'tap';
import { convertForeign, type ForeignOptions } from '../../src/claim-webhook/foreign-conversion.js';
import { readMemory, readShare, WHOLE_GPU } from '../../src/claim-webhook/gpu-share.js';
import { applyPatch, pod, type Container } from './pods.js';

const GIB = 2 ** 30;
const NONE: ForeignOptions = { share: null, gpuMemoryBytes: null };

const asking = (limits: object, name = 'main'): Container => ({ name, resources: { limits } });

/** The limits of the first container of a converted pod, or the reason of the refusal. */
function limitsOf(limits: object, options: Partial<ForeignOptions> = {}): object | string {
  const object = pod([asking(limits)]);
  const conversion = convertForeign(object, { ...NONE, ...options });
  if (conversion.kind === 'unchanged') return 'unchanged';
  if (conversion.kind === 'refused') return conversion.reason;
  return applyPatch(object, conversion.patch).spec.containers[0]?.resources?.limits ?? {};
}

test('amounts of HAMi become cores and blocks of one GPU', (t) => {
  const both = { 'nvidia.com/gpu': 1, 'nvidia.com/gpucores': 30, 'nvidia.com/gpumem': 4000, cpu: '2' };
  t.same(limitsOf(both), { cpu: '2', 'tencent.com/vcuda-core': 30, 'tencent.com/vcuda-memory': 16 });
  t.same(limitsOf({ 'nvidia.com/gpucores': '50', 'nvidia.com/gpumem-percentage': 25 }, { gpuMemoryBytes: 80 * GIB }), {
    'tencent.com/vcuda-core': 50,
    'tencent.com/vcuda-memory': 80,
  });
  t.same(limitsOf({ 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 100 }), { 'tencent.com/vcuda-core': 200 });
  t.match(limitsOf({ 'nvidia.com/gpucores': 50, 'nvidia.com/gpumem-percentage': 25 }), /give --gpu-memory/);
  t.match(limitsOf({ 'nvidia.com/gpucores': 120, 'nvidia.com/gpumem': 256 }), /more than 100/);
  t.match(
    limitsOf({ 'nvidia.com/gpucores': 20, 'tencent.com/vcuda-core': 20 }),
    /asks for tencent.com\/vcuda-core and/,
  );
  t.end();
});

test('parts of several GPUs become their sum and the number of GPUs, for each container where they differ', (t) => {
  const parts = { 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 30, 'nvidia.com/gpumem': 4000 };
  const converted = (containers: readonly Container[], annotations?: Record<string, string>) => {
    const object = pod(containers);
    if (annotations !== undefined) object.metadata.annotations = annotations;
    const conversion = convertForeign(object, NONE);
    if (conversion.kind !== 'converted') return conversion;
    const { metadata, spec } = applyPatch(object, conversion.patch);
    return [
      metadata.annotations?.['tencent.com/vcuda-gpus'],
      ...spec.containers.map(({ resources }) => resources?.limits),
    ];
  };
  const sum = { 'tencent.com/vcuda-core': 60, 'tencent.com/vcuda-memory': 32 };
  t.same(converted([asking(parts)]), ['2', sum]);
  t.same(converted([asking(parts), asking(parts, 'other')]), ['2', sum, sum]);
  t.same(converted([asking(parts), asking({ 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 100 }, 'whole')]), [
    '2',
    sum,
    { 'tencent.com/vcuda-core': 200 },
  ]);
  t.same(converted([asking(parts)], { 'tencent.com/vcuda-gpus': '2' }), ['2', sum]);
  t.match(converted([asking(parts)], { 'tencent.com/vcuda-gpus': '3' }), {
    kind: 'refused',
    reason: /container main gets 2 GPUs; the annotation tencent.com\/vcuda-gpus says 3/,
  });
  const one = { 'nvidia.com/gpu': 1, 'nvidia.com/gpumem': 256 };
  t.match(converted([asking(parts), asking(one, 'one')]), ['main=2,one=1', sum, { 'tencent.com/vcuda-core': 10 }]);
  const own = { 'tencent.com/vcuda-core': 50, 'tencent.com/vcuda-memory': 4 };
  t.same(converted([asking(parts), asking(own, 'own')]), ['main=2,own=1', sum, own], 'a request of ours stays');
  t.match(converted([asking(parts), asking(one, 'one')], { 'tencent.com/vcuda-gpus': 'main=2' }), ['main=2']);
  t.match(converted([asking({ ...parts, 'nvidia.com/gpu': 17 })]), { kind: 'refused', reason: /at most 16/ });
  t.end();
});

test('memory without a limit of compute gets few cores and a soft limit, and the notes say what differs', (t) => {
  const object = pod([asking({ 'nvidia.com/gpu': 1, 'nvidia.com/gpumem': 3000 })]);
  object.metadata.annotations = { 'nvidia.com/use-gputype': 'A100', 'nvidia.com/vgpu-mode': 'mig', mine: 'yes' };
  (object.spec as { schedulerName?: string }).schedulerName = 'hami-scheduler';
  const conversion = convertForeign(object, NONE);
  if (conversion.kind !== 'converted') throw new Error(JSON.stringify(conversion));
  t.match(conversion.patch, [
    { path: '/spec/containers/0/resources', value: { limits: { 'tencent.com/vcuda-core': 10 } } },
    {
      path: '/metadata/annotations',
      value: { mine: 'yes', 'tencent.com/vcuda-core-limit': 'main=100', 'tencent.com/use-gpu-model': 'A100' },
    },
    { op: 'remove', path: '/spec/schedulerName' },
  ]);
  t.match(conversion.notes, [
    /compute has no limit; it gets 10 cores.*3000 MiB become 12 blocks of 256 MiB, 3072 MiB/,
    /annotation nvidia.com\/vgpu-mode has no equal/,
  ]);
  t.end();
});

test('values of HAMi are passed on as far as the extender reads them', (t) => {
  const converted = (annotations: Record<string, string>) => {
    const object = pod([asking({ 'nvidia.com/gpu': 1, 'nvidia.com/gpucores': 30, 'nvidia.com/gpumem': 4096 })]);
    object.metadata.annotations = annotations;
    const conversion = convertForeign(object, NONE);
    if (conversion.kind !== 'converted') return conversion;
    const { metadata, spec } = applyPatch(object, conversion.patch);
    const { 'tencent.com/gpu-policy': gpus, 'tencent.com/node-policy': nodes } = metadata.annotations ?? {};
    return { gpus, nodes, limits: spec.containers[0]?.resources?.limits, notes: conversion.notes };
  };
  const [gpuPolicy, nodePolicy] = ['hami.io/gpu-scheduler-policy', 'hami.io/node-scheduler-policy'];
  t.match(converted({ [gpuPolicy]: 'spread', [nodePolicy]: 'binpack' }), {
    gpus: 'spread',
    nodes: 'binpack',
    notes: [],
  });
  for (const value of ['topology-aware', 'numa-first', 'Spread'])
    t.match(converted({ [gpuPolicy]: value, [nodePolicy]: value }), {
      gpus: undefined,
      nodes: undefined,
      notes: [`annotation ${gpuPolicy}: "${value}" has no equal`, `annotation ${nodePolicy}: "${value}" has no equal`],
    });
  t.match(converted({ [gpuPolicy]: 'mutex' }), {
    gpus: undefined,
    limits: { 'tencent.com/vcuda-core': 100 },
    notes: [/mutex gives it whole GPUs/],
  });
  t.match(converted({ 'nvidia.com/use-gpuuuid': 'gpu 1' }), {
    kind: 'refused',
    reason: /nvidia.com\/use-gpuuuid.*expected/,
  });
  t.match(converted({ 'nvidia.com/use-gputype': '' }), { kind: undefined, notes: [] });
  t.end();
});

test('nvidia.com/gpu becomes what its share says, and stays without one', (t) => {
  t.equal(limitsOf({ 'nvidia.com/gpu': 1 }), 'unchanged');
  t.same(limitsOf({ 'nvidia.com/gpu': 2 }, { share: WHOLE_GPU }), { 'tencent.com/vcuda-core': 200 });
  t.same(limitsOf({ 'nvidia.com/gpu': 1 }, { share: readShare('cores=25,memory=8GiB') }), {
    'tencent.com/vcuda-core': 25,
    'tencent.com/vcuda-memory': 32,
  });
  t.equal(limitsOf({ cpu: '1' }, { share: WHOLE_GPU }), 'unchanged');
  t.end();
});

test('memory is written in MiB, GiB, percent or blocks', (t) => {
  for (const [text, expected] of [
    ['8GiB', { bytes: 8 * GIB }],
    ['8Gi', { bytes: 8 * GIB }],
    ['512MiB', { bytes: GIB / 2 }],
    ['16', { bytes: 4 * GIB }],
    ['25%', { percent: 25 }],
  ] as const)
    t.same(readMemory(text), expected, text);
  for (const wrong of ['', '0', '0%', '101%', '-1GiB', 'much', '8Gib']) t.equal(readMemory(wrong), null, wrong);
  for (const wrong of ['', 'cores=25', 'cores=0,memory=1GiB', 'cores=101,memory=1GiB', 'memory=1GiB,x=2'])
    t.equal(readShare(wrong), null, wrong);
  t.end();
});
