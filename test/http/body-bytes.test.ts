import fc from 'fast-check';
import { test } from 'tap';
import { BodyBytes } from '../../src/http/body-bytes.js';

test('the bytes of a body are those of its chunks in order, whatever length was announced', (t) => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 30 });
  const check = fc.property(chunks, fc.nat(10_000), (arrays, announced) => {
    const body = new BodyBytes(announced);
    for (const array of arrays) body.add(Buffer.from(array));
    return body.bytes.equals(Buffer.concat(arrays));
  });
  t.doesNotThrow(() => fc.assert(check));
  t.end();
});

test('an announced length that never comes takes no more than four times what came', (t) => {
  const body = new BodyBytes(1 << 30);
  for (let at = 0; at < 10; at += 1) body.add(Buffer.alloc(100_000));
  t.equal(body.bytes.length, 1_000_000);
  t.ok(body.bytes.buffer.byteLength <= 4_000_000, `${body.bytes.buffer.byteLength} bytes`);
  body.clear();
  t.equal(body.bytes.length, 0);
  t.end();
});
