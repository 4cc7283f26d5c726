import fc from 'fast-check';
import { test } from 'tap';
import { compactIds, DeviceIds, expandIds } from '../../src/gpu/device-id.js';

const gpu = (uuid: string) => ({ uuid, memoryBytes: 16 * 2 ** 30 });
const H200 = gpu('GPU-3f2a9c01-1111-2222-3333-444455556666');

test('an id contains its GPU, kind and number in a few characters', (t) => {
  const ids = new DeviceIds([H200]);
  t.equal(ids.encode({ gpuUuid: H200.uuid, kind: 'core', number: 17 }), '3f2a9c01-c17');
  t.equal(ids.encode({ gpuUuid: H200.uuid, kind: 'memory', number: 4 }), '3f2a9c01-m4');
  t.same(ids.decode('3f2a9c01-c17'), { gpuUuid: H200.uuid, kind: 'core', number: 17 });
  t.end();
});

test('a GPU has 100 core ids and one memory id for each whole 256 MiB', (t) => {
  const odd = { uuid: H200.uuid, memoryBytes: 1_000_000_000 };
  const ids = new DeviceIds([odd]);
  t.equal(ids.all(odd, 'core').length, 100);
  t.same(ids.all(odd, 'memory'), ['3f2a9c01-m0', '3f2a9c01-m1', '3f2a9c01-m2']);
  t.end();
});

test('GPUs whose UUIDs share a prefix get longer names, and other GPUs keep their names', (t) => {
  const twin = gpu('GPU-3f2a9c01-1112-2222-3333-444455556666');
  const other = gpu('GPU-aaaaaaaa-0000-0000-0000-000000000000');
  const ids = new DeviceIds([H200, twin, other]);
  t.equal(ids.encode({ gpuUuid: H200.uuid, kind: 'core', number: 0 }), '3f2a9c011111-c0');
  t.equal(ids.encode({ gpuUuid: twin.uuid, kind: 'core', number: 0 }), '3f2a9c011112-c0');
  t.equal(ids.encode({ gpuUuid: other.uuid, kind: 'core', number: 0 }), 'aaaaaaaa-c0');
  t.end();
});

test('two GPUs with one UUID are an error', (t) => {
  t.throws(() => new DeviceIds([H200, { ...H200 }]), { message: /two GPUs have the same UUID/ });
  t.end();
});

for (const text of [
  'tencent.com/vcuda-core-17',
  '3f2a9c01-c017',
  '3f2a9c01-x1',
  '3f2a9c01-c',
  'ffffffff-c1',
  '',
  '3f2a9c01-c-1',
]) {
  test(`${JSON.stringify(text)} is no id of this node`, (t) => {
    t.equal(new DeviceIds([H200]).decode(text), null);
    t.end();
  });
}

test('any set of ids survives the conversion to ranges and back', (t) => {
  const id = fc
    .tuple(fc.constantFrom('a-c', 'b-m', 'tencent.com/vcuda-core-'), fc.nat({ max: 300 }))
    .map(([prefix, number]) => `${prefix}${number}`);
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.oneof({ weight: 9, arbitrary: id }, { weight: 1, arbitrary: fc.constantFrom('odd', 'x') })),
      (ids) => {
        t.same(new Set(expandIds(compactIds(ids))), new Set(ids));
      },
    ),
    { numRuns: 200 },
  );
  t.same(compactIds(['a-c3', 'a-c1', 'a-c2', 'a-c9']), { 'a-c': '1-3,9' });
  t.throws(() => expandIds({ 'a-c': '5-2' }), { message: /not a range/ });
  t.throws(() => expandIds({ 'a-c': '0-99999999999' }), { message: /not a range/ });
  t.end();
});
