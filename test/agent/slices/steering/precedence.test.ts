import { test } from 'tap';
import { precedenceOf, type Contender } from '../../../../src/agent/slices/steering/precedence.js';
import type { Priority } from '../../../../src/gpu/priority.js';

function contender(allocation: string, share: number, priority: Priority, uuids = ['GPU-0']): Contender {
  return { allocation, devices: uuids.map((uuid) => ({ uuid, share, softLimit: null, priority })) };
}

test('low slices yield to high slices of their GPU, and divide the floor by their shares', (t) => {
  const found = precedenceOf([
    contender('low-a', 30, 'low'),
    contender('high', 40, 'high'),
    contender('low-b', 10, 'low'),
    contender('normal', 20, 'normal'),
    contender('elsewhere', 20, 'high', ['GPU-1']),
  ]);
  t.same([...found.keys()], ['low-a', 'low-b']);
  t.same(found.get('low-a'), [{ before: ['high'], inTurns: false, givesWay: { believed: [80], floor: 375 } }]);
  t.same(found.get('low-b'), [{ before: ['high'], inTurns: false, givesWay: { believed: [80], floor: 125 } }]);
  t.end();
});

test('a claim is valid for twice the time that its slice may use the GPU, soft limit included', (t) => {
  const high = (share: number, softLimit: number | null): Contender => ({
    allocation: 'high',
    devices: [{ uuid: 'GPU-0', share, softLimit, priority: 'high' }],
  });
  const believed = (one: Contender) =>
    precedenceOf([one, contender('low', 30, 'low')]).get('low')?.[0]?.givesWay.believed;
  t.same(believed(high(10, null)), [20]);
  t.same(believed(high(10, 30)), [60]);
  t.same(believed(high(10, 100)), [100]);
  t.end();
});

test('at most as many high slices count as a limits file has room for, and a slice of several GPUs yields on each', (t) => {
  const many = Array.from({ length: 40 }, (_, index) => contender(`high-${index}`, 5, 'high'));
  t.equal(precedenceOf([...many, contender('low', 30, 'low')]).get('low')?.[0]?.before.length, 32);
  const found = precedenceOf([
    contender('low', 30, 'low', ['GPU-0', 'GPU-1', 'GPU-2']),
    contender('high', 40, 'high', ['GPU-1', 'GPU-2']),
  ]);
  t.same(
    found.get('low')?.map((one) => one?.before ?? null),
    [null, ['high'], ['high']],
  );
  t.equal(precedenceOf([contender('low', 100, 'low'), contender('high', 40, 'high')]).size, 0, 'whole GPUs');
  t.end();
});

test('a normal slice that may borrow gives way to those that lend, up to its own share, and to high ones first', (t) => {
  const soft = (allocation: string, share: number, priority: Priority): Contender => ({
    allocation,
    devices: [{ uuid: 'GPU-0', share, softLimit: 100, priority }],
  });
  const found = precedenceOf([
    soft('service', 20, 'normal'),
    soft('batch', 30, 'normal'),
    contender('hard', 10, 'normal'),
    soft('low', 10, 'low'),
    soft('high', 10, 'high'),
  ]);
  t.same([...found.keys()], ['service', 'batch', 'low'], 'hard shares and high slices give way to none');
  t.same(found.get('batch'), [
    { before: ['high', 'service'], inTurns: false, givesWay: { believed: [100, 40], floor: 3000 } },
  ]);
  t.same(found.get('low'), [{ before: ['high'], inTurns: false, givesWay: { believed: [100], floor: 500 } }]);
  t.equal(precedenceOf([soft('alone', 20, 'normal'), contender('hard', 10, 'normal')]).size, 0);
  t.end();
});

test('slices that not all others can read borrow as the agent grants, neither claiming nor giving way', (t) => {
  const soft = (allocation: string, share: number): Contender => ({
    allocation,
    devices: [{ uuid: 'GPU-0', share, softLimit: 100, priority: 'normal' }],
  });
  const small = Array.from({ length: 63 }, (_, index) => soft(`small-${index}`, 1));
  const found = precedenceOf([...small, soft('large', 30), contender('high', 5, 'high')]);
  const parts = [...found.keys()];
  t.same(parts, [...small.slice(0, 31).map(({ allocation }) => allocation), 'large']);
  for (const [allocation, [precedence]] of found) {
    const others = ['high', ...parts].filter((other) => other !== allocation);
    t.same([...(precedence?.before ?? [])].toSorted(), others.toSorted(), `${allocation} reads all others`);
  }
  t.equal(precedenceOf(small.slice(0, 9)).size, 9);
  t.end();
});

test('slices with a hard share take turns with the other ones of their GPU, and with no others', (t) => {
  const found = precedenceOf([
    contender('a', 30, 'normal'),
    contender('b', 60, 'normal', ['GPU-1', 'GPU-0']),
    contender('high', 10, 'high'),
    { allocation: 'soft', devices: [{ uuid: 'GPU-0', share: 10, softLimit: 100, priority: 'normal' }] },
    contender('whole', 100, 'normal'),
  ]);
  t.same(found.get('a'), [{ before: ['b'], inTurns: true, givesWay: { believed: [0], floor: 0 } }]);
  t.same(found.get('b'), [null, { before: ['a'], inTurns: true, givesWay: { believed: [0], floor: 0 } }]);
  t.notOk(found.has('whole'));
  t.end();
});
