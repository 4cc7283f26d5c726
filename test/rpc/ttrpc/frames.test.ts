import { test } from 'tap';
import { ChunkReader, CHUNK_LIMIT_BYTES, encodeChunks } from '../../../src/rpc/ttrpc/chunk.js';
import {
  encodeMessage,
  MESSAGE_LIMIT_BYTES,
  MESSAGE_TYPE,
  MessageReader,
  type TtrpcMessage,
} from '../../../src/rpc/ttrpc/message.js';
import { generator } from '../../generator.js';

const request = (streamId: number, payload: Uint8Array): Buffer =>
  encodeMessage({ streamId, type: MESSAGE_TYPE.request, payload });
const seen = ({ streamId, type, payload }: TtrpcMessage) => [streamId, type, payload?.toString('latin1') ?? null];

test('the reader assembles a message from pieces of any size', (t) => {
  const random = generator(28);
  const texts = ['', 'a', 'b'.repeat(4_085), 'c'.repeat(4_086), 'd'.repeat(4_087), 'e'.repeat(100_000), ''];
  const stream = Buffer.concat(texts.map((text, index) => request(2 * index + 1, Buffer.from(text))));
  for (let round = 0; round < 50; round += 1) {
    const reader = new MessageReader();
    const messages: TtrpcMessage[] = [];
    for (let at = 0; at < stream.length;) {
      const length = 1 + Math.floor(random() ** 3 * 20_000);
      messages.push(...reader.feed(stream.subarray(at, at + length)));
      at += length;
    }
    t.same(
      messages.map(seen),
      texts.map((text, index) => [2 * index + 1, MESSAGE_TYPE.request, text]),
    );
  }
  t.end();
});

test('the reader skips a message beyond the limit and reads the next one', (t) => {
  const reader = new MessageReader(10);
  const stream = Buffer.concat([
    request(1, Buffer.alloc(10, 'x')),
    request(3, Buffer.alloc(11)),
    request(5, Buffer.from('y')),
  ]);
  const messages = [...stream].flatMap((byte) => reader.feed(Buffer.of(byte)));
  t.same(messages.map(seen), [
    [1, 1, 'x'.repeat(10)],
    [3, 1, null],
    [5, 1, 'y'],
  ]);
  t.end();
});

test('an announced length takes no memory before its bytes arrive', (t) => {
  const before = process.memoryUsage().arrayBuffers;
  const header = request(1, Buffer.alloc(0));
  header.writeUInt32BE(MESSAGE_LIMIT_BYTES, 0);
  const readers = Array.from({ length: 200 }, () => {
    const reader = new MessageReader();
    reader.feed(header);
    return reader;
  });
  t.ok(process.memoryUsage().arrayBuffers - before < 8 * 2 ** 20, `${readers.length} readers`);
  t.end();
});

test('the writer refuses a payload beyond the limit', (t) => {
  t.throws(() => request(1, Buffer.alloc(MESSAGE_LIMIT_BYTES + 1)), /exceeds the limit of 4194304/);
  t.end();
});

test('the reader splits chunks at any cut of the stream, and no chunk exceeds one read of a Go peer', (t) => {
  const random = generator(29);
  const messages = [1, 4_096, 4_097, 70_000].map((bytes, index) => ({
    connection: 1 + (index % 2),
    bytes: Buffer.alloc(bytes, 'abcd'[index]),
  }));
  const stream = Buffer.concat(messages.map(({ connection, bytes }) => encodeChunks(connection, bytes)));
  const sizes: number[] = [];
  for (let at = 0; at < stream.length; at += 8 + stream.readUInt32BE(at + 4)) sizes.push(stream.readUInt32BE(at + 4));
  t.same(sizes, [1, 4_096, 4_096, 1, 4_096, 70_000 - 4_096]);
  for (let round = 0; round < 50; round += 1) {
    const reader = new ChunkReader();
    const carried = new Map<number, Buffer[]>();
    for (let at = 0; at < stream.length;) {
      const length = 1 + Math.floor(random() ** 3 * 20_000);
      for (const { connection, bytes } of reader.feed(stream.subarray(at, at + length)))
        carried.set(connection, [...(carried.get(connection) ?? []), Buffer.from(bytes)]);
      at += length;
    }
    for (const connection of [1, 2])
      t.ok(
        Buffer.concat(carried.get(connection) ?? []).equals(
          Buffer.concat(messages.filter((one) => one.connection === connection).map(({ bytes }) => bytes)),
        ),
      );
  }
  t.end();
});

test('the reader refuses a chunk longer than any message', (t) => {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(1, 0);
  header.writeUInt32BE(CHUNK_LIMIT_BYTES, 4);
  t.same(new ChunkReader().feed(header), []);
  header.writeUInt32BE(CHUNK_LIMIT_BYTES + 1, 4);
  t.throws(() => new ChunkReader().feed(header), /exceeds the limit/);
  t.end();
});
