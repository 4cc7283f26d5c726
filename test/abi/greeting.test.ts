import { test } from 'tap';
import { decodeGreeting, looksLikeGreeting } from '../../src/abi/greeting.js';
import { GREETING, GREETING_MAGIC } from '../../src/abi/vgpu-abi.js';

function greeting(change: (bytes: Buffer) => void = () => undefined): Buffer {
  const bytes = Buffer.alloc(GREETING.structSize);
  bytes.writeBigUInt64LE(GREETING_MAGIC, GREETING.magic);
  bytes.writeUInt32LE(1, GREETING.version);
  bytes.writeUInt32LE(GREETING.structSize, GREETING.size);
  bytes.writeUInt32LE(42, GREETING.pid);
  bytes.writeUInt32LE(3, GREETING.slot);
  bytes.writeBigUInt64LE(987_654n, GREETING.startTicks);
  change(bytes);
  return bytes;
}

test('the first byte distinguishes a greeting from HTTP/2', (t) => {
  t.equal(looksLikeGreeting(greeting().subarray(0, 1)), true);
  t.equal(looksLikeGreeting(Buffer.from('PRI * HTTP/2.0')), false);
  t.end();
});

test('a greeting names the slot of its process in the usage file', (t) => {
  t.same(decodeGreeting(greeting()), { ok: true, greeting: { pid: 42, slot: 3, startTicks: 987_654 } });
  t.end();
});

test('an incomplete greeting asks for more bytes', (t) => {
  for (let length = 0; length < GREETING.structSize; length++) {
    t.match(decodeGreeting(greeting().subarray(0, length)), { ok: false, code: 'incomplete' });
  }
  t.end();
});

test('a greeting with another magic, version or slot is refused', (t) => {
  t.match(decodeGreeting(greeting((bytes) => bytes.writeUInt8(0, 7))), { ok: false, code: 'other' });
  t.match(decodeGreeting(greeting((bytes) => bytes.writeUInt32LE(9, GREETING.version))), {
    code: 'other',
    reason: 'greeting of version 9',
  });
  t.match(decodeGreeting(greeting((bytes) => bytes.writeUInt32LE(512, GREETING.slot))), {
    code: 'other',
    reason: 'slot 512 does not exist',
  });
  t.end();
});
