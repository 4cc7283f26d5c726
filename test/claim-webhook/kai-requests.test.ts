import { test } from 'tap';
import { Environment } from '@marcbachmann/cel-js';
import { convertForeign, type ForeignOptions } from '../../src/claim-webhook/foreign-conversion.js';
import { ASKS_KAI } from '../../src/claim-webhook/kai-requests.js';
import { applyPatch, pod, type Container } from './pods.js';

const GIB = 2 ** 30;
const NONE: ForeignOptions = { share: null, gpuMemoryBytes: null };
const MAIN: Container = { name: 'main', resources: { limits: { cpu: '2' } } };

const ofMain = (field: string): string => `nvidia.com/container.main.${field}`;

/** The converted pod, reduced to what conversion decides; or the reason of the refusal. */
function converted(
  annotations: Record<string, string>,
  { containers = [MAIN], ...options }: Partial<ForeignOptions> & { readonly containers?: readonly Container[] } = {},
) {
  const object = pod(containers);
  object.metadata.annotations = annotations;
  const conversion = convertForeign(object, { ...NONE, ...options });
  if (conversion.kind === 'unchanged') return 'unchanged';
  if (conversion.kind === 'refused') return conversion.reason;
  const { metadata, spec } = applyPatch(object, conversion.patch);
  return {
    limits: spec.containers.map(({ resources }) => resources?.limits),
    annotations: metadata.annotations,
    notes: conversion.notes,
  };
}

test('memory of KAI becomes blocks, with few cores and the idle time of the GPU', async (t) => {
  t.match(converted({ [ofMain('gpu-memory.request')]: '4Gi', mine: 'yes' }), {
    limits: [{ cpu: '2', 'tencent.com/vcuda-core': 10, 'tencent.com/vcuda-memory': 16 }],
    annotations: { mine: 'yes', 'tencent.com/vcuda-core-limit': 'main=100' },
    notes: [/its compute has no limit; it gets 10 cores/],
  });
  t.match(converted({ [ofMain('gpu-memory.limit')]: '3000' }), { limits: [{ 'tencent.com/vcuda-memory': 12 }] });
  const kept = converted({ [ofMain('gpu-memory.request')]: '4Gi', [ofMain('gpu-compute.mode')]: 'time-slicing' });
  t.notMatch(JSON.stringify(kept), /nvidia/, 'a second look at the pod finds nothing to convert');
});

test('a limit above the request becomes a resize, and a portion of multiprocessors stays one', async (t) => {
  t.match(
    converted({
      [ofMain('gpu-memory.request')]: '4Gi',
      [ofMain('gpu-memory.limit')]: '6Gi',
      [ofMain('gpu-compute.mode')]: 'sm-sharing',
      [ofMain('gpu-compute.portion')]: '0.25',
    }),
    {
      limits: [{ 'tencent.com/vcuda-core': 25, 'tencent.com/vcuda-memory': 16 }],
      annotations: { 'tencent.com/vcuda-memory-resize': 'main=24', 'tencent.com/vcuda-compute': 'sm' },
      notes: [
        /24 blocks while its GPU has room, on nodes with --allow-res/,
        /vcuda-compute: sm needs a node with --sm-gpus/,
      ],
    },
  );
});

test('a pod in which only some containers share multiprocessors gets shares of time', async (t) => {
  const found = converted(
    {
      [ofMain('gpu-memory.request')]: '4Gi',
      [ofMain('gpu-compute.portion')]: '0.25',
      'nvidia.com/container.side.gpu-memory.request': '1Gi',
    },
    { containers: [MAIN, { name: 'side' }] },
  );
  t.match(found, { limits: [{ 'tencent.com/vcuda-core': 25 }, { 'tencent.com/vcuda-core': 10 }] });
  t.match(JSON.stringify(found), /portions of multiprocessors become shares of time/);
  t.notMatch(JSON.stringify(found), /vcuda-compute/);
});

test('fractions of KAI and Run:ai become a share of time and of memory', async (t) => {
  const options = { gpuMemoryBytes: 80 * GIB };
  t.match(converted({ 'gpu-fraction': '0.5' }, options), {
    limits: [{ 'tencent.com/vcuda-core': 50, 'tencent.com/vcuda-memory': 160 }],
    annotations: { 'tencent.com/vcuda-core-limit': 'main=100' },
    notes: [/its compute becomes 50 cores, and up to 100/],
  });
  t.match(converted({ 'gpu-fraction': '0.5' }), /whose size is not known; give --gpu-memory/);
  t.match(converted({ 'gpu-memory': '2048', 'gpu-fraction-num-devices': '2' }), {
    limits: [{ 'tencent.com/vcuda-core': 20, 'tencent.com/vcuda-memory': 16 }],
    annotations: { 'tencent.com/vcuda-gpus': '2' },
  });
  const two = [MAIN, { name: 'side' }];
  t.match(converted({ 'gpu-memory': '2048', 'gpu-fraction-container-name': 'side' }, { containers: two }), {
    limits: [{ cpu: '2' }, { 'tencent.com/vcuda-memory': 8 }],
  });
});

for (const [annotations, reason] of [
  [{ [ofMain('gpu-memory.request')]: 'much' }, /is "much"; expected an amount such as 4Gi, or MiB/],
  [{ [ofMain('gpu-memory.request')]: '4Gi', [ofMain('gpu-memory.limit')]: '2Gi' }, /limit is below the request/],
  [{ [ofMain('gpu-compute.portion')]: '0.5' }, /container main has no nvidia\.com\/container\.main\.gpu-memory\.req/],
  [
    { [ofMain('gpu-memory.request')]: '4Gi', [ofMain('gpu-compute.portion')]: '25' },
    /portion is "25"; expected a number above 0 and up to 1/,
  ],
  [
    { [ofMain('gpu-memory.request')]: '4Gi', [ofMain('gpu-compute.mode')]: 'mps' },
    /mode is "mps"; expected time-slicing or sm-sharing/,
  ],
  [{ 'nvidia.com/container.other.gpu-memory.request': '4Gi' }, /the pod has no container other/],
  [{ 'gpu-fraction': '1.5' }, /is "1.5"; expected a number above 0 and up to 0\.99/],
  [{ 'gpu-fraction': '0.5', 'gpu-memory': '100' }, /exclude each other/],
  [{ 'gpu-memory': '100', [ofMain('gpu-memory.request')]: '4Gi' }, /asks for a share of a GPU in two ways/],
] as const)
  test(`refused: ${JSON.stringify(annotations)}`, async (t) => {
    t.match(converted(annotations), reason);
  });

test('requests of KAI beside other requests are refused', async (t) => {
  const kai = { [ofMain('gpu-memory.request')]: '4Gi' };
  const asking = (limits: object): { readonly containers: readonly Container[] } => ({
    containers: [{ name: 'main', resources: { limits } }],
  });
  t.match(converted(kai, asking({ 'nvidia.com/gpumem': 2048 })), /in two ways/);
  t.match(converted(kai, asking({ 'tencent.com/vcuda-core': 20 })), /asks for tencent\.com\/vcuda-core and for GPUs/);
});

test('the API server asks the webhook about pods with such annotations', async (t) => {
  const language = new Environment({ unlistedVariablesAreDyn: true });
  const asks = (annotations: object | null): unknown =>
    language.evaluate(ASKS_KAI, { object: { metadata: annotations === null ? {} : { annotations } } });
  for (const key of ['gpu-fraction', 'gpu-memory', ofMain('gpu-memory.request'), ofMain('gpu-compute.portion')])
    t.equal(asks({ [key]: '1' }), true, key);
  t.equal(asks(null), false);
  t.equal(asks({ 'gpu-fraction-num-devices': '2', 'nvidia.com/gpu': '1' }), false);
});
