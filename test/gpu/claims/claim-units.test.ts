import { test } from 'tap';
import { sliceUnits, unitsOfAllocation, type ClaimUser } from '../../../src/gpu/claims/claim-units.js';
import { deviceName } from '../../../src/gpu/claims/names.js';
import type { AllocationResult, ResourceClaim } from '../../../src/gpu/claims/resource-claim.js';
import type { Gpu } from '../../../src/gpu/gpu.js';
import type { ClaimUnit } from '../../../src/gpu/ledger/claim-unit.js';

const GPUS: readonly Gpu[] = [0, 1].map((index) => ({
  index,
  minor: index,
  uuid: `GPU-${index}`,
  pciBusId: `00000000:0${index}:00.0`,
  model: 'NVIDIA H200',
  memoryBytes: 16 * 2 ** 30,
  numaNode: null,
}));

const POOL = 'node/vcuda';
const CONTEXT = { pool: POOL, gpus: GPUS, now: 7 };

const result = (
  request: string,
  index: number,
  cores: number | null = 30,
  more: Partial<AllocationResult> = {},
): AllocationResult => ({
  request,
  driver: 'gpu.tencent.com',
  pool: POOL,
  device: deviceName(`GPU-${index}`),
  shareId: null,
  adminAccess: false,
  consumedCapacity:
    cores === null
      ? null
      : new Map([
          ['cores', cores],
          ['memory', 4 * 2 ** 30],
        ]),
  ...more,
});

const claim = (name: string, ...results: readonly AllocationResult[]): ResourceClaim => ({
  uid: `uid-${name}`,
  namespace: 'team',
  name,
  allocation: { results, configs: [] },
  pods: [],
  isOfPod: false,
  nameInPod: null,
  annotations: new Map(),
});

function units(...claims: readonly ResourceClaim[]): ClaimUnit[] {
  return claims.flatMap((entry) => {
    const read = unitsOfAllocation(entry, CONTEXT);
    if (!read.ok) throw new Error(read.reason);
    return read.units;
  });
}

const user = (name: string, ...uses: readonly (readonly [string, string?])[]): ClaimUser => ({
  container: { podUid: 'pod', namespace: 'team', pod: 'p', container: name },
  uses: uses.map(([claimName, request]) => ({ claim: claimName, request: request ?? null })),
});

test('an allocation result becomes the amounts that it consumes, the whole GPU, or nothing for admin access', (t) => {
  const [share] = units(claim('a', result('gpu', 0)));
  t.match(share, { request: 'gpu', devices: [{ gpuUuid: 'GPU-0', cores: 30, memoryBlocks: 16 }], admin: false });
  const [whole] = units(claim('a', result('gpu', 0, null)));
  t.match(whole?.devices, [{ cores: 100, memoryBlocks: 64 }]);
  const [admin] = units(claim('a', result('gpu', 0, 30, { adminAccess: true })));
  t.match(admin, { admin: true, devices: [{ cores: 0, memoryBlocks: 0 }] });
  t.end();
});

test('alternatives of one request form one unit, whose id follows from claim and request', (t) => {
  const [first, ...others] = units(claim('a', result('gpus/linked', 0), result('gpus/linked', 1)));
  t.same(others, []);
  t.equal(first?.request, 'gpus');
  t.equal(units(claim('a', result('gpus/any', 1)))[0]?.id, first?.id);
  t.match(first?.id, /^[0-9a-f]{16}$/);
  t.end();
});

for (const [what, entry, reason] of [
  ['not allocated', { ...claim('a'), allocation: null }, /claim team\/a is not allocated/],
  [
    'allocated on another node',
    claim('a', result('gpu', 0, 30, { pool: 'other/vcuda' })),
    /of pool other\/vcuda, this node's pool is node\/vcuda/,
  ],
  ['allocated a missing GPU', claim('a', result('gpu', 9)), /device gpu-9 is not on this node any more/],
  ['allocated half a core', claim('a', result('gpu', 0, 0.5)), /not whole cores/],
] as const) {
  test(`the agent refuses a claim that is ${what}`, (t) => {
    t.match(unitsOfAllocation(entry, CONTEXT), { ok: false, reason });
    t.end();
  });
}

test('the agent ignores results of other drivers', (t) => {
  t.same(units(claim('a', result('nic', 0, 30, { driver: 'nic.example.com', device: 'nic-0' }))), []);
  t.end();
});

test('units that one container uses together share a slice, and other units have slices of their own', (t) => {
  const both = sliceUnits(units(claim('a', result('gpu', 0)), claim('b', result('gpu', 1))), [
    user('main', ['a'], ['b']),
  ]);
  t.ok(both.ok && new Set(both.units.map(({ slice }) => slice)).size === 1);
  const apart = sliceUnits(units(claim('a', result('gpu', 0)), claim('b', result('gpu', 1))), [
    user('x', ['a']),
    user('y', ['b']),
  ]);
  t.ok(apart.ok && apart.units.every(({ id, slice }) => id === slice));
  t.match(apart.ok && apart.units[0]?.consumers, [{ container: 'x' }]);
  const requests = sliceUnits(units(claim('a', result('one', 0), result('two', 0))), [
    user('x', ['a', 'one']),
    user('y', ['a', 'two']),
  ]);
  t.ok(
    requests.ok && requests.units.every(({ id, slice }) => id === slice),
    'two containers each use a part of one GPU',
  );
  t.end();
});

test('amounts of one GPU are added up where only one container uses it, and refused where containers share it', (t) => {
  const own = sliceUnits(units(claim('a', result('gpu', 0)), claim('b', result('gpu', 0))), [
    user('main', ['a'], ['b']),
  ]);
  t.ok(own.ok && new Set(own.units.map(({ slice }) => slice)).size === 1);
  const shared = sliceUnits(units(claim('a', result('gpu', 0)), claim('b', result('gpu', 0))), [
    user('main', ['a'], ['b']),
    user('other', ['b']),
  ]);
  t.match(shared, {
    ok: false,
    reason:
      /container main would get GPU GPU-0 from claim team\/\w request gpu and claim team\/\w request gpu, and shares one of them/,
  });
  t.end();
});

test('a unit that another pod already uses cannot be joined with a further unit', (t) => {
  const [mine, theirs] = units(claim('a', result('gpu', 0)), claim('b', result('gpu', 1)));
  const sliced = sliceUnits([mine, theirs] as ClaimUnit[], [user('main', ['a'], ['b'])], new Set([theirs?.id ?? '']));
  t.match(sliced, { ok: false, reason: /cannot be used together, because another pod uses one of them already/ });
  t.end();
});
