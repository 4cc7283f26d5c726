import fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'tap';
import { RefusedRequest } from '../../src/http/answer.js';
import { BodyReader } from '../../src/http/body-reader.js';

const LIMITS = { bodyBytes: 20_000, bodiesBytes: 50_000, bodiesBytesPerAddress: 30_000 };

/** A request whose body comes in these chunks. */
function request(chunks: readonly Uint8Array[]): IncomingMessage {
  const body = new PassThrough();
  for (const chunk of chunks) body.write(chunk);
  body.end();
  return Object.assign(body, { headers: {}, socket: { remoteAddress: '10.0.0.1' } }) as unknown as IncomingMessage;
}

/** The status with which the reader refuses a body; null if it takes it. */
async function refusedStatus(reader: BodyReader, chunks: readonly Uint8Array[]): Promise<number | null> {
  try {
    await reader.read(request(chunks));
    return null;
  } catch (error) {
    if (error instanceof RefusedRequest) return error.answer.status;
    throw error;
  }
}

test('the bytes of a body are those of its chunks in order, however small they are', async (t) => {
  const chunk = fc.oneof(fc.uint8Array({ maxLength: 4 }), fc.uint8Array({ maxLength: 1_200 }));
  const property = fc.asyncProperty(fc.array(chunk, { maxLength: 40 }), async (chunks) => {
    const reader = new BodyReader({ ...LIMITS, bodyBytes: 50_000, bodiesBytesPerAddress: 50_000 });
    const { bytes, release } = await reader.read(request(chunks));
    const held = reader.heldBytes;
    release();
    return bytes.equals(Buffer.concat(chunks)) && held === bytes.length && reader.heldBytes === 0;
  });
  await t.resolves(fc.assert(property));
});

test('a body counts against the limits of its address until it is released', async (t) => {
  const reader = new BodyReader(LIMITS);
  const body = [Buffer.alloc(16_000)];
  const { release } = await reader.read(request(body));
  t.equal(await refusedStatus(reader, body), 503);
  t.equal(reader.heldBytes, 16_000);
  release();
  t.ok(await reader.read(request(body)));
  t.equal(await refusedStatus(reader, [Buffer.alloc(20_001)]), 413);
});

test('large bodies of an address leave room for small ones of the same address', async (t) => {
  const mebibyte = 1 << 20;
  const reader = new BodyReader({
    bodyBytes: 8 * mebibyte,
    bodiesBytes: 64 * mebibyte,
    bodiesBytesPerAddress: 32 * mebibyte,
  });
  const large = Array.from({ length: 8 * 16 }, () => Buffer.alloc(mebibyte / 16));
  const small = [Buffer.alloc(20_000)];
  const taken: (() => void)[] = [];
  for (let index = 0; index < 3; index++) taken.push((await reader.read(request(large))).release);
  t.equal(await refusedStatus(reader, large), 503, 'a fourth of 8 MiB is beyond three quarters');
  t.equal(reader.heldBytes, 24 * mebibyte, 'what is refused is not held');
  for (let index = 0; index < 400; index++) taken.push((await reader.read(request(small))).release);
  t.equal(reader.heldBytes, 24 * mebibyte + 400 * 20_000);
  t.equal(
    await refusedStatus(
      reader,
      Array.from({ length: 60 }, () => small[0] as Buffer),
    ),
    503,
  );
  t.equal(await refusedStatus(reader, large.slice(0, 1)), null, 'the rest is for small ones');
  for (const release of taken) release();
  t.ok(await reader.read(request(large)));
});
