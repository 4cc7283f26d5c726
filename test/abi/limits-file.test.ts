import fc from 'fast-check';
import { test } from 'tap';
import { decodeLimits, encodeLimits, publishLive, publishPolicy } from '../../src/abi/limits-file.js';
import { DEVICE_LIVE, LIMITS_HEADER, LIMITS_LAYOUT, MAX_DEVICES } from '../../src/abi/vgpu-abi.js';
import type { FileWrite, Limits, LiveLimit, NewDeviceLimits, NewLimits } from '../../src/abi/limits-file.js';

const uuid = 'GPU-8b1f3c2a-0000-4000-8000-00000000000a';
const device: NewDeviceLimits = {
  uuid,
  pciBusId: '00000000:3B:00.0',
  memoryBytes: 4 * 268_435_456,
  share: 30,
  softLimit: null,
};
const oneDevice: NewLimits = { allocation: 'a-17', devices: [device] };

function decoded(buffer: Buffer): Limits {
  const result = decodeLimits(buffer);
  if (!result.ok) throw new Error(result.reason);
  return result.limits;
}

function apply(file: Buffer, writes: readonly FileWrite[]): Buffer {
  const changed = Buffer.from(file);
  for (const write of writes) write.bytes.copy(changed, write.position);
  return changed;
}

const shares = fc.integer({ min: 1, max: 100 });
const deviceLimit = {
  memoryBytes: fc.option(fc.integer({ min: 1, max: 2 ** 46 })),
  share: shares,
  softLimit: fc.option(shares),
};
const newDevice = fc.record({
  uuid: fc.uuid().map((id) => `GPU-${id}`),
  pciBusId: fc
    .integer({ min: 0, max: 255 })
    .map((bus) => `00000000:${bus.toString(16).padStart(2, '0').toUpperCase()}:00.0`),
  ...deviceLimit,
});
const liveLimit: fc.Arbitrary<LiveLimit> = fc
  .record({
    ...deviceLimit,
    hostBackedBytes: fc.integer({ min: 0, max: 2 ** 46 }),
    driverOverheadBytes: fc.integer({ min: 0, max: 2 ** 46 }),
    generation: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    steering: fc.option(
      fc.record({
        atNs: fc.bigInt({ min: 1n, max: 2n ** 63n }),
        grantPpm: fc.option(fc.integer({ min: 1, max: 1_000_000 })),
        correctionPpm: fc.integer({ min: 1, max: 4_000_000 }),
        alone: fc.boolean(),
        othersPpm: fc.integer({ min: 0, max: 1_000_000 }),
      }),
    ),
  })
  .map(({ hostBackedBytes, ...live }) => (hostBackedBytes === 0 ? live : { ...live, hostBackedBytes }));

test('encoded limits decode to the same limits', (t) => {
  const limits = fc.record({
    allocation: fc.stringMatching(/^[a-z0-9-]{0,63}$/),
    devices: fc.array(newDevice, { maxLength: MAX_DEVICES }),
    denyUnlisted: fc.boolean(),
    unenforced: fc.boolean(),
    suspendable: fc.boolean(),
    logLevel: fc.constantFrom('none' as const, 'error' as const, 'warning' as const, 'info' as const, 'debug' as const),
  });
  fc.assert(
    fc.property(limits, (written) => {
      const read = decoded(encodeLimits(written));
      const devices = written.devices.map((one) => ({ ...one, driverOverheadBytes: 0, steering: null, generation: 0 }));
      t.same(read, { ...written, devices, memoryByDriver: false, suspended: 'not', sequence: 0 });
    }),
    { numRuns: 200 },
  );
  t.end();
});

test('a new file denies unlisted GPUs and reports errors only', (t) => {
  const limits = decoded(encodeLimits(oneDevice));
  t.equal(limits.denyUnlisted, true);
  t.equal(limits.logLevel, 'error');
  t.equal(limits.sequence, 0);
  t.end();
});

test('publishing replaces the live part of the file and leaves the rest unchanged', (t) => {
  fc.assert(
    fc.property(fc.array(liveLimit, { minLength: 1, maxLength: 5 }), (rounds) => {
      let file = encodeLimits(oneDevice);
      let sequence = 0;
      for (const round of rounds) {
        const publication = publishLive(sequence, [round]);
        file = apply(file, publication.writes);
        sequence = publication.sequence;
        const read = decoded(file);
        t.equal(read.sequence, sequence);
        t.same(read.devices, [{ uuid, pciBusId: '00000000:3B:00.0', ...round }]);
      }
    }),
    { numRuns: 100 },
  );
  t.end();
});

test('a writer that dies before its last write leaves the old limits in force', (t) => {
  const file = encodeLimits(oneDevice);
  const resized: LiveLimit = {
    memoryBytes: 1,
    share: 99,
    softLimit: null,
    driverOverheadBytes: 0,
    generation: 1,
    steering: null,
  };
  const { writes } = publishLive(0, [resized]);
  t.equal(writes.length, 2);
  t.same(decoded(apply(file, writes.slice(0, 1))), decoded(file));
  t.equal(decoded(apply(file, writes)).devices[0]?.share, 99);
  t.end();
});

test('the sequence number wraps around', (t) => {
  const file = encodeLimits(oneDevice);
  file.writeUInt32LE(0xffff_ffff, LIMITS_HEADER.sequence);
  const live: LiveLimit = {
    memoryBytes: null,
    share: 50,
    softLimit: 80,
    driverOverheadBytes: 7,
    generation: 2,
    steering: null,
  };
  const publication = publishLive(0xffff_ffff, [live]);
  t.equal(publication.sequence, 0);
  t.equal(decoded(apply(file, publication.writes)).devices[0]?.softLimit, 80);
  t.end();
});

test('a memory limit of zero bytes is a limit, not the absence of one', (t) => {
  const limits = decoded(encodeLimits({ ...oneDevice, devices: [{ ...device, memoryBytes: 0 }] }));
  t.equal(limits.devices[0]?.memoryBytes, 1);
  t.end();
});

test('a share outside of 1..100 in a file means a whole GPU', (t) => {
  for (const share of [0, 101, 0xffff_ffff]) {
    const file = encodeLimits(oneDevice);
    file.writeUInt32LE(share, LIMITS_LAYOUT.live + DEVICE_LIVE.share);
    t.equal(decoded(file).devices[0]?.share, 100);
  }
  t.end();
});

test('limits that no file can hold are refused before any write', (t) => {
  const of = (change: Partial<NewDeviceLimits>) => () =>
    encodeLimits({ ...oneDevice, devices: [{ ...device, ...change }] });
  t.throws(of({ share: 0 }), RangeError);
  t.throws(of({ share: 101 }), RangeError);
  t.throws(of({ share: 30.5 }), RangeError);
  t.throws(of({ softLimit: 0 }), RangeError);
  t.throws(of({ memoryBytes: -1.5 }), { message: /number of bytes/ });
  t.throws(of({ memoryBytes: Number.NaN }), RangeError);
  t.throws(of({ uuid: 'x'.repeat(64) }), RangeError);
  t.throws(of({ pciBusId: 'a\0b' }), RangeError);
  t.throws(() => encodeLimits({ allocation: 'a', devices: Array.from({ length: 17 }, () => device) }), RangeError);
  const live: LiveLimit = { ...device, driverOverheadBytes: 0, generation: 0, steering: null };
  t.throws(
    () =>
      publishLive(
        0,
        Array.from({ length: 17 }, () => live),
      ),
    RangeError,
  );
  t.end();
});

test('a file that is short, foreign, of another version or with too many GPUs is refused with its reason', (t) => {
  const file = encodeLimits(oneDevice);
  const changed = (offset: number, value: number): Buffer => {
    const copy = Buffer.from(file);
    copy.writeUInt32LE(value, offset);
    return copy;
  };
  t.match(decodeLimits(file.subarray(0, 100)), { ok: false, code: 'truncated' });
  t.match(decodeLimits(changed(LIMITS_HEADER.magic, 1)), { ok: false, code: 'magic' });
  t.match(decodeLimits(changed(LIMITS_HEADER.version, 2)), {
    ok: false,
    code: 'version',
    reason: 'version 2 instead of 1',
  });
  t.match(decodeLimits(changed(LIMITS_HEADER.size, file.length + 1)), { ok: false, code: 'truncated' });
  t.match(decodeLimits(changed(LIMITS_HEADER.deviceCount, 17)), { ok: false, code: 'devices' });
  t.match(decodeLimits(Buffer.concat([file, Buffer.alloc(64)])), { ok: true });
  t.end();
});

test('the decoder does not throw, whatever the bytes', (t) => {
  const file = encodeLimits(oneDevice);
  const damage = fc.array(fc.tuple(fc.integer({ min: 0, max: file.length - 1 }), fc.integer({ min: 0, max: 255 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(damage, fc.integer({ min: 0, max: file.length }), (bytes, length) => {
      const copy = Buffer.from(file);
      for (const [offset, value] of bytes) copy[offset] = value;
      decodeLimits(copy.subarray(0, length));
      decodeLimits(copy);
    }),
  );
  t.end();
});

test('the policy of a file changes in one write, and nothing else does', (t) => {
  const before = encodeLimits({ allocation: 'a', devices: [] });
  const { position, bytes } = publishPolicy({
    denyUnlisted: true,
    unenforced: false,
    memoryByDriver: true,
    suspendable: false,
  });
  const after = Buffer.from(before);
  bytes.copy(after, position);
  t.same(decoded(after), { ...decoded(before), memoryByDriver: true });
  const back = publishPolicy({ denyUnlisted: true, unenforced: false, memoryByDriver: false, suspendable: false });
  back.bytes.copy(after, back.position);
  t.ok(after.equals(before));
  t.end();
});
