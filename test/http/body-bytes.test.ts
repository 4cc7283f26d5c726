import fc from 'fast-check';
import { test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { BodyBytes } from '../../src/http/body-bytes.js';
import { SpareBuffer } from '../../src/http/spare-buffer.js';
import { ManualClock } from '../manual-clock.js';

test('the bytes of a body are those of its chunks in order, whatever length was announced', (t) => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 30 });
  const check = fc.property(chunks, fc.nat(10_000), (arrays, announced) => {
    const body = new BodyBytes(announced, new SpareBuffer(systemClock));
    for (const array of arrays) body.add(Buffer.from(array));
    return body.bytes.equals(Buffer.concat(arrays));
  });
  t.doesNotThrow(() => fc.assert(check));
  t.end();
});

test('an announced length that never comes takes no more than four times what came', (t) => {
  const body = new BodyBytes(1 << 30, new SpareBuffer(systemClock));
  for (let at = 0; at < 10; at += 1) body.add(Buffer.alloc(100_000));
  t.equal(body.bytes.length, 1_000_000);
  t.ok(body.bytes.buffer.byteLength <= 4_000_000, `${body.bytes.buffer.byteLength} bytes`);
  body.clear();
  t.equal(body.bytes.length, 0);
  t.end();
});

test('bodies whose buffers serve later bodies have their own bytes, also while several are read', (t) => {
  const bytes = fc.integer({ min: 1, max: 400_000 });
  const check = fc.property(fc.array(fc.tuple(bytes, fc.boolean(), fc.nat(3)), { maxLength: 12 }), (bodies) => {
    const spare = new SpareBuffer(systemClock);
    const open: { body: BodyBytes; bytes: Buffer }[] = [];
    for (const [at, [length, isAnnounced, index]] of bodies.entries()) {
      const body = new BodyBytes(isAnnounced ? length : 0, spare);
      const bytes = Buffer.alloc(length, at + 1);
      for (let from = 0; from < length; from += 60_000) body.add(Buffer.from(bytes.subarray(from, from + 60_000)));
      open.push({ body, bytes });
      if (!open.every((one) => one.body.bytes.equals(one.bytes))) return false;
      if (index < open.length) open.splice(index, 1)[0]?.body.clear();
    }
    return true;
  });
  t.doesNotThrow(() => fc.assert(check));
  t.end();
});

test('a large body uses the buffer of the body before it, a small one does not', (t) => {
  const clock = new ManualClock();
  const spare = new SpareBuffer(clock);
  const read = (chunks: number) => {
    const body = new BodyBytes(chunks * 60_000, spare);
    for (let at = 0; at < chunks; at++) body.add(Buffer.alloc(60_000));
    return body;
  };
  const first = read(10);
  const memory = first.bytes.buffer;
  first.clear();
  const small = read(1);
  t.not(small.bytes.buffer, memory);
  small.clear();
  const second = read(8);
  t.equal(second.bytes.buffer, memory);
  t.not(read(8).bytes.buffer, memory, 'while it is in use');
  second.clear();
  clock.advance(59_000);
  const third = read(9);
  t.equal(third.bytes.buffer, memory);
  third.clear();
  clock.advance(61_000);
  t.not(read(9).bytes.buffer, memory, 'after a minute without use');
  t.end();
});
