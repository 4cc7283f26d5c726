import fc from 'fast-check';
import { test } from 'tap';
import { decodeUsage, decodeUsageSummary, encodeUsage } from '../../src/abi/usage-file.js';
import {
  DEVICE_USAGE,
  LEDGER_ENTRY,
  MAX_PROCESSES,
  PROCESS_SLOT,
  USAGE_HEADER,
  USAGE_LAYOUT,
} from '../../src/abi/vgpu-abi.js';
import type { Usage } from '../../src/abi/usage-file.js';

const slotAt = (slot: number): number => USAGE_LAYOUT.slots + slot * PROCESS_SLOT.structSize;
const entryAt = (device: number, slot: number): number =>
  USAGE_LAYOUT.ledger + (device * MAX_PROCESSES + slot) * LEDGER_ENTRY.structSize;

function withProcess(file: Buffer, slot: number, pid: number, startTicks: number): Buffer {
  file.writeBigUInt64LE((BigInt(startTicks) << 24n) | (BigInt(pid) << 2n) | 1n, slotAt(slot) + PROCESS_SLOT.owner);
  file.write('python3', slotAt(slot) + PROCESS_SLOT.name, 'latin1');
  file.writeUInt32LE(Math.max(slot + 1, file.readUInt32LE(USAGE_HEADER.slotHigh)), USAGE_HEADER.slotHigh);
  return file;
}

function decoded(file: Buffer): Usage {
  const result = decodeUsage(file);
  if (!result.ok) throw new Error(result.reason);
  return result.usage;
}

test('a new file holds no process and no bytes', (t) => {
  const usage = decoded(encodeUsage());
  t.same(usage.processes, []);
  t.equal(usage.devices.length, 16);
  t.ok(usage.heldBytes.every((bytes) => bytes === 0));
  t.ok(usage.devices.every((device) => device.launches === 0 && device.denied.alloc === 0));
  t.end();
});

test('processes are read with their identity, self test result and bytes per GPU', (t) => {
  const file = withProcess(withProcess(encodeUsage(), 0, 17, 123_456), 9, 4_194_303, 2 ** 40 - 1);
  file.writeUInt32LE(0b01101, slotAt(9) + PROCESS_SLOT.selfTest);
  file.writeUInt32LE(3, slotAt(9) + PROCESS_SLOT.unhooked);
  file.writeUInt32LE(0b101, slotAt(9) + PROCESS_SLOT.obstacles);
  file.copy(
    file,
    slotAt(9) + PROCESS_SLOT.obstaclesOwner,
    slotAt(9) + PROCESS_SLOT.owner,
    slotAt(9) + PROCESS_SLOT.owner + 8,
  );
  file.writeUInt32LE(2, slotAt(9) + PROCESS_SLOT.linksUnread);
  file.writeBigUInt64LE(1000n, entryAt(2, 9) + LEDGER_ENTRY.heldBytes);
  file.writeBigUInt64LE(24n, entryAt(2, 9) + LEDGER_ENTRY.tentativeBytes);
  file.writeBigUInt64LE(500n, entryAt(2, 0) + LEDGER_ENTRY.heldBytes);
  const usage = decoded(file);
  t.same(
    usage.processes.map(({ slot, pid, startTicks, name }) => ({ slot, pid, startTicks, name })),
    [
      { slot: 0, pid: 17, startTicks: 123_456, name: 'python3' },
      { slot: 9, pid: 4_194_303, startTicks: 2 ** 40 - 1, name: 'python3' },
    ],
  );
  t.same(usage.processes[1]?.selfTest, {
    driverFound: true,
    lookupKnown: false,
    devicesMatched: true,
    sessionOpen: true,
    eventsWork: false,
  });
  t.equal(usage.processes[1]?.unhooked, 3);
  t.same(
    usage.processes.map(({ obstacles }) => obstacles),
    [null, ['managed', 'external']],
    'the first process has an earlier library',
  );
  t.same(
    usage.processes.map(({ hasUnreadLinks }) => hasUnreadLinks),
    [false, true],
  );
  t.equal(usage.processes[1]?.heldBytes[2], 1024);
  t.equal(usage.heldBytes[2], 1524);
  t.end();
});

test('counters are read by name, and refusals by kind of call', (t) => {
  const file = encodeUsage();
  const at = USAGE_LAYOUT.devices + 3 * DEVICE_USAGE.structSize;
  file.writeBigUInt64LE(7n, at + DEVICE_USAGE.launches);
  file.writeBigUInt64LE(8n, at + DEVICE_USAGE.throttledNs);
  file.writeBigUInt64LE(9n, at + DEVICE_USAGE.denied + 5 * 8);
  const summary = decodeUsageSummary(file.subarray(0, USAGE_LAYOUT.slots));
  if (!summary.ok) throw new Error(summary.reason);
  t.match(summary.devices[3], { launches: 7, throttledNs: 8, denied: { alloc: 0, vmm: 9, external: 0 } });
  t.end();
});

test('numbers and sums beyond the exact integers saturate', (t) => {
  const file = withProcess(withProcess(encodeUsage(), 0, 1, 1), 1, 2, 1);
  file.writeBigUInt64LE(2n ** 64n - 1n, entryAt(0, 0) + LEDGER_ENTRY.heldBytes);
  file.writeBigUInt64LE(2n ** 64n - 1n, entryAt(0, 1) + LEDGER_ENTRY.heldBytes);
  t.equal(decoded(file).heldBytes[0], Number.MAX_SAFE_INTEGER);
  t.end();
});

test('the name that a process gives itself is read without unprintable characters', (t) => {
  const file = withProcess(encodeUsage(), 0, 1, 1);
  Buffer.from('\x1b[31m<\xff>\n0123456789', 'latin1').copy(file, slotAt(0) + PROCESS_SLOT.name, 0, 16);
  t.equal(decoded(file).processes[0]?.name, '?[31m<?>?0123456');
  t.end();
});

test('slots being reclaimed and slots above the high-water mark are not processes', (t) => {
  const file = withProcess(withProcess(encodeUsage(), 0, 1, 1), 5, 2, 1);
  file.writeUInt32LE(5, USAGE_HEADER.slotHigh);
  file.writeUInt8((file.readUInt8(slotAt(0)) & ~3) | 2, slotAt(0));
  t.same(decoded(file).processes, []);
  t.end();
});

test('short, foreign and newer files are refused with the reason', (t) => {
  const file = encodeUsage();
  t.match(decodeUsage(file.subarray(0, 4096)), { ok: false, code: 'truncated' });
  t.match(decodeUsageSummary(file.subarray(0, 4096)), { ok: false, code: 'truncated' });
  t.match(decodeUsage(Buffer.alloc(file.length)), { ok: false, code: 'magic' });
  file.writeUInt32LE(2, USAGE_HEADER.version);
  t.match(decodeUsage(file), { ok: false, code: 'version', reason: 'version 2 instead of 1' });
  t.end();
});

test('the agent reads numbers within their range, whatever a container writes into its usage file', (t) => {
  const damage = fc.array(
    fc.tuple(fc.integer({ min: 16, max: USAGE_LAYOUT.structSize - 8 }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(damage, (writes) => {
      const file = encodeUsage();
      file.writeUInt32LE(0xffff_ffff, USAGE_HEADER.slotHigh);
      for (const [offset, value] of writes) file.writeBigUInt64LE(value, offset);
      const usage = decoded(file);
      t.ok(usage.processes.length <= MAX_PROCESSES);
      t.ok(usage.heldBytes.every((bytes) => Number.isSafeInteger(bytes) && bytes >= 0));
      t.ok(usage.devices.every((one) => Number.isSafeInteger(one.launches)));
    }),
    { numRuns: 50 },
  );
  t.end();
});
