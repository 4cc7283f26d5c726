import fc from 'fast-check';
import { test } from 'tap';
import type { DeviceLimit } from '../../../../src/abi/limits-file.js';
import {
  describeLimit,
  holdLimits,
  mergeRequests,
  NO_REQUEST,
  readLimitAnnotations,
  sameLimits,
} from '../../../../src/agent/slices/limits/live-limits.js';
import { parseCores, parseMemory } from '../../../../src/manifests/container-value.js';

const MIB = 2 ** 20;
const BLOCK = 256 * MIB;

test('annotations are read in the units of the resources that they limit', (t) => {
  const annotations = new Map([
    ['tencent.com/vcuda-memory-limit', '16'],
    ['tencent.com/vcuda-share-limit', '20'],
    ['tencent.com/vcuda-core-limit', '60'],
    ['other', 'x'],
  ]);
  t.same(readLimitAnnotations(annotations, 'main'), {
    request: { memoryBytes: 16 * BLOCK, share: 20, softLimit: 60 },
    problems: [],
  });
  t.same(readLimitAnnotations(new Map(), 'main'), { request: NO_REQUEST, problems: [] });
  t.end();
});

for (const [text, bytes] of [
  ['1', BLOCK],
  ['0', null],
  ['-1', null],
  ['1.5', null],
  ['1536Mi', 1536 * MIB],
  ['1.5Gi', 1536 * MIB],
  ['2G', 2e9],
  ['4GiB', 4096 * MIB],
  ['0Mi', null],
  ['1e3', 1000],
  ['', null],
  ['Gi', null],
  ['99999999999999999999Gi', null],
  ['12 Mi', null],
  ['9999999999', 9_999_999_999],
] as const) {
  test(`memory ${JSON.stringify(text)} is ${bytes ?? 'nothing'}`, (t) => {
    t.equal(parseMemory(text), bytes);
    t.end();
  });
}

test('shares are whole cores up to one GPU, and a larger soft limit is one GPU, as in the original', (t) => {
  t.same(['1', '100', '101', '0', '-5', '1.5', 'half', ''].map(parseCores), [
    1,
    100,
    null,
    null,
    null,
    null,
    null,
    null,
  ]);
  const soft = (text: string) =>
    readLimitAnnotations(new Map([['tencent.com/vcuda-core-limit', text]]), 'main').request.softLimit;
  t.same(['50', '250', '0', '-5', '1.5', 'half', ''].map(soft), [50, 100, null, null, null, null, null]);
  t.end();
});

test('malformed values are named and ignored', (t) => {
  const { request, problems } = readLimitAnnotations(
    new Map([
      ['tencent.com/vcuda-memory-limit', 'a lot'],
      ['tencent.com/vcuda-share-limit', '20'],
    ]),
    'main',
  );
  t.same(request, { memoryBytes: null, share: 20, softLimit: null });
  t.match(problems, [/tencent\.com\/vcuda-memory-limit: "a lot" is not a number of blocks/]);
  t.end();
});

const part: DeviceLimit = { memoryBytes: 8 * BLOCK, share: 40, softLimit: null };
const wholeLimited: DeviceLimit = { memoryBytes: 8 * BLOCK, share: 100, softLimit: null };
const whole: DeviceLimit = { memoryBytes: null, share: 100, softLimit: null };

test('a part of a GPU is limited to the request, or to the allocation where that is less', (t) => {
  t.same(holdLimits([part], { memoryBytes: 4 * BLOCK, share: 30, softLimit: 70 }), {
    devices: [{ memoryBytes: 4 * BLOCK, share: 30, softLimit: 70 }],
    notes: [],
  });
  const { devices, notes } = holdLimits([part], { memoryBytes: 9 * BLOCK, share: 50, softLimit: 40 });
  t.same(devices, [{ memoryBytes: 8 * BLOCK, share: 40, softLimit: null }]);
  t.match(notes, [/memory stays/, /share stays 40, which is what was allocated; 50 is more/]);
  t.same(holdLimits([part], NO_REQUEST), { devices: [part], notes: [] });
  t.end();
});

test('several GPUs divide the memory as it was allocated', (t) => {
  const given = [
    { ...wholeLimited, memoryBytes: 6 * BLOCK },
    { ...wholeLimited, memoryBytes: 2 * BLOCK },
  ];
  t.same(
    holdLimits(given, { ...NO_REQUEST, memoryBytes: 4 * BLOCK }).devices.map(({ memoryBytes }) => memoryBytes),
    [3 * BLOCK, BLOCK],
  );
  t.same(
    holdLimits(given, { ...NO_REQUEST, share: 50, softLimit: 80 }).devices,
    given.map((device) => ({ ...device, share: 50, softLimit: 80 })),
  );
  t.end();
});

test('whole GPUs without a memory limit run without limits, so an annotation that limits them is refused with the reason', (t) => {
  const { devices, notes } = holdLimits([whole, whole], { memoryBytes: BLOCK, share: 50, softLimit: 80 });
  t.same(devices, [whole, whole]);
  t.match(notes, [
    /whole GPUs without a memory limit, so no memory limit can be set/,
    /run without limits, so no share can/,
  ]);
  t.same(
    holdLimits([whole], { ...NO_REQUEST, softLimit: 50 }),
    { devices: [whole], notes: [] },
    'the original ignored the soft limit, too',
  );
  t.end();
});

const limit = fc.record({
  memoryBytes: fc.option(fc.integer({ min: 1, max: 1e12 })),
  share: fc.integer({ min: 1, max: 100 }),
  softLimit: fc.constant(null),
});
const request = fc.record({
  memoryBytes: fc.option(fc.integer({ min: 1, max: 2e12 })),
  share: fc.option(fc.integer({ min: 1, max: 100 })),
  softLimit: fc.option(fc.integer({ min: 1, max: 100 })),
});

test('no limit exceeds the allocation and no soft limit is below the share, whatever the annotations', (t) => {
  const property = fc.property(fc.array(limit, { minLength: 1, maxLength: 4 }), request, (given, asked) => {
    const { devices } = holdLimits(given, asked);
    const total = devices.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0);
    const fits = devices.every((device, index) => {
      const own = given[index];
      if (own === undefined) return false;
      const memory =
        own.memoryBytes === null
          ? device.memoryBytes === null
          : device.memoryBytes !== null && device.memoryBytes <= own.memoryBytes;
      return (
        memory &&
        device.share >= 1 &&
        device.share <= own.share &&
        (device.softLimit === null || device.softLimit > device.share)
      );
    });
    const limited = given.every(({ memoryBytes }) => memoryBytes !== null);
    return (
      fits &&
      (!limited ||
        asked.memoryBytes === null ||
        total <= Math.max(asked.memoryBytes, 0) ||
        total === given.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0))
    );
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.end();
});

test('the setting of an operator precedes the annotation, field by field', (t) => {
  t.same(mergeRequests({ memoryBytes: 1, share: 2, softLimit: null }, { memoryBytes: null, share: 5, softLimit: 6 }), {
    memoryBytes: 1,
    share: 5,
    softLimit: 6,
  });
  t.end();
});

test('limits are compared and described', (t) => {
  t.equal(sameLimits([part], [{ ...part }]), true);
  for (const other of [
    { ...part, share: 1 },
    { ...part, memoryBytes: null },
    { ...part, softLimit: 50 },
    { ...part, hostBackedBytes: 1 },
  ])
    t.equal(sameLimits([part], [other]), false);
  t.equal(sameLimits([part], []), false);
  t.equal(describeLimit({ memoryBytes: 1536 * MIB, share: 20, softLimit: 60 }), '1536 MiB, share 20, up to 60');
  t.equal(describeLimit(whole), 'all memory, share 100');
  t.end();
});

test('a list in an annotation applies to the containers that it names', (t) => {
  const memory = (text: string, container: string) =>
    readLimitAnnotations(new Map([['tencent.com/vcuda-memory-limit', text]]), container);
  const list = 'main=16, side=1536Mi';
  t.match(memory(list, 'main'), { request: { memoryBytes: 16 * BLOCK }, problems: [] });
  t.match(memory(list, 'side'), { request: { memoryBytes: 1536 * MIB }, problems: [] });
  t.match(memory(list, 'other'), { request: NO_REQUEST, problems: [] });
  t.match(memory('main=a lot,side=4', 'side'), { request: { memoryBytes: 4 * BLOCK }, problems: [] });
  for (const broken of ['main=', 'main=a lot', '=4', 'main=4,4', 'main=4,main=8', 'main=4,'])
    t.match(memory(broken, 'main'), { request: NO_REQUEST, problems: [/is not a number of blocks/] }, broken);
  t.end();
});

const PRIORITY = 'tencent.com/vcuda-priority';
const SLICE: DeviceLimit = { memoryBytes: 4096 * MIB, share: 40, softLimit: null };

test('the priority is one of three words, for all containers or for the named ones', (t) => {
  const read = (value: string, container = 'main') => readLimitAnnotations(new Map([[PRIORITY, value]]), container);
  for (const priority of ['high', 'normal', 'low'] as const) t.equal(read(priority).request.priority, priority);
  t.equal(read('main=low,side=high', 'side').request.priority, 'high');
  t.equal(read('side=high').request.priority, undefined);
  for (const wrong of ['', 'High', 'highest', '1', 'main=urgent']) {
    const { request, problems } = read(wrong);
    t.equal(request.priority, undefined, wrong);
    t.match(problems, [/^tencent.com\/vcuda-priority: .* is not high, normal or low$/], wrong);
  }
  t.end();
});

test('a pod chooses the priority of its containers, up to the priority of its claim', (t) => {
  const held = (given: DeviceLimit, priority: 'high' | 'normal' | 'low') =>
    holdLimits([given], { ...NO_REQUEST, priority });
  t.same(held(SLICE, 'high').devices, [{ ...SLICE, priority: 'high' }]);
  t.same(held(SLICE, 'normal').devices, [SLICE]);
  t.same(held({ ...SLICE, priority: 'high' }, 'low'), { devices: [{ ...SLICE, priority: 'low' }], notes: [] });
  t.same(held({ ...SLICE, priority: 'low' }, 'high'), {
    devices: [{ ...SLICE, priority: 'low' }],
    notes: ['the priority stays low, which is what was allocated; high is higher'],
  });
  t.same(held({ ...SLICE, share: 100 }, 'low'), {
    devices: [{ ...SLICE, share: 100 }],
    notes: ['the priority low has no effect: no other container uses its GPUs'],
  });
  t.equal(describeLimit({ ...SLICE, priority: 'low' }), '4096 MiB, share 40, priority low');
  t.notOk(sameLimits([SLICE], [{ ...SLICE, priority: 'high' }]));
  t.ok(sameLimits([SLICE], [{ ...SLICE, priority: 'normal' }]));
  t.end();
});
