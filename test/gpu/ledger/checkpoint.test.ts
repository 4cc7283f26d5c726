import fc from 'fast-check';
import { test } from 'tap';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import type { Allocation } from '../../../src/gpu/ledger/allocation.js';
import type { ClaimUnit } from '../../../src/gpu/ledger/claim-unit.js';
import type { LegacyHolding } from '../../../src/gpu/ledger/legacy-holding.js';

const allocation: Allocation = {
  id: '0123456789abcdef',
  parts: [{ gpuUuid: 'GPU-1', coreIds: ['a-c0', 'a-c1'], memoryIds: ['a-m7'] }],
  phase: 'started',
  owners: [{ podUid: 'u', namespace: 'n', pod: 'p', container: 'c' }],
  allocatedAt: 1_700_000_000_000,
  missingSince: null,
};
const legacy: LegacyHolding = {
  container: { podUid: 'old', namespace: '', pod: '', container: 'main' },
  cores: 30,
  memoryBlocks: 4,
  parts: [{ gpuUuid: 'GPU-1', cores: 30, memoryBlocks: 4 }],
  gpusKnown: true,
  missingSince: null,
};
const unit: ClaimUnit = {
  id: '00112233445566ff',
  claim: { uid: 'claim-uid', namespace: 'team', name: 'gpu' },
  request: 'gpu',
  devices: [
    { request: 'gpu', pool: 'node/vcuda', device: 'gpu-2', shareId: 's', gpuUuid: 'GPU-2', cores: 30, memoryBlocks: 4 },
  ],
  admin: false,
  softLimit: 60,
  slice: '00112233445566ff',
  consumers: [{ podUid: 'p', namespace: 'team', pod: 'a', container: 'main' }],
  phase: 'prepared',
  chargedAt: 7,
  missingSince: null,
};
const made = { device: 'gpu-2-1g-10gb-19-0', gpuUuid: 'GPU-2', profileId: 19, start: 0, uuid: null };

const state = {
  allocations: new Map([[allocation.id, allocation]]),
  halves: [{ memoryIds: ['a-m1', 'a-m2'], takenAt: 5 }],
  legacy: [legacy],
  units: new Map([[unit.id, unit]]),
  modes: new Map([
    ['GPU-1', 'plugin'],
    ['GPU-2', 'claims'],
  ] as const),
  instances: new Map([['gpu-2-1g-10gb-19-0', made]]),
};

test('a checkpoint returns what was written', (t) => {
  const decoded = decodeCheckpoint(encodeCheckpoint(state));
  t.match(decoded, { ok: true, format: 'current' });
  if (decoded.ok && decoded.format === 'current') {
    t.same(decoded.content.allocations, [allocation]);
    t.same(decoded.content.halves, state.halves);
    t.same(decoded.content.legacy, [legacy]);
    t.same(decoded.content.units, [unit]);
    t.same(decoded.content.modes, state.modes);
    t.same(decoded.content.instances, [made]);
  }
  t.end();
});

test('after any byte is changed, cut or added, a checkpoint is refused with a reason or has the same content', (t) => {
  const text = encodeCheckpoint(state);
  const whole = JSON.stringify(decodeCheckpoint(text));
  fc.assert(
    fc.property(
      fc.nat({ max: text.length - 1 }),
      fc.nat({ max: 255 }),
      fc.constantFrom('flip', 'cut', 'insert'),
      (at, byte, how) => {
        const change = String.fromCharCode(byte);
        const damaged =
          how === 'cut' ? text.slice(0, at) : text.slice(0, at) + change + text.slice(how === 'flip' ? at + 1 : at);
        const decoded = decodeCheckpoint(damaged);
        return decoded.ok ? JSON.stringify(decoded) === whole : decoded.reason.length > 0;
      },
    ),
    { numRuns: 2_000 },
  );
  t.end();
});

for (const [what, text, reason] of [
  ['empty', '', /not JSON/],
  ['a list', '[]', /not a JSON object/],
  ['of another version', '{"version":2,"state":{}}', /version 2 is not 1/],
  ['without a checksum', '{"version":1,"state":{}}', /checksum does not match/],
] as const) {
  test(`the agent refuses a checkpoint that is ${what}`, (t) => {
    t.match(decodeCheckpoint(text), { ok: false, reason });
    t.end();
  });
}

test("the agent recognises the original's checkpoint", (t) => {
  const text = '{"PodGPUMapping":{"uid":{"main":{"Devices":["/dev/nvidia0"],"Cores":50,"Memory":268435456}}}}';
  t.same(decodeCheckpoint(text), {
    ok: true,
    format: 'original',
    allocations: [
      { podUid: 'uid', container: 'main', devicePaths: ['/dev/nvidia0'], cores: 50, memoryBytes: 268_435_456 },
    ],
  });
  t.match(decodeCheckpoint('{"PodGPUMapping":{"uid":{"main":{}}}}'), { ok: false, reason: /uid\/main is incomplete/ });
  t.end();
});
