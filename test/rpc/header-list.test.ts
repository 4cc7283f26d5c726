import fc from 'fast-check';
import hpack from 'hpack.js';
import { test } from 'tap';
import { HeaderListDecoder, type HeaderListField } from '../../src/rpc/header-list.js';
import { cases } from '../cases.js';

const LIMIT_BYTES = 65_536;
/** A block cannot be longer: the rewriter in front of the decoder ends the connection. */
const BLOCK_BYTES = 4_096;

/** Text of header fields: what Node and gRPC send, one byte a character. */
const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
const fields: fc.Arbitrary<HeaderListField[]> = fc.array(fc.record({ name: text, value: text }), { maxLength: 12 });

function encoded(list: readonly HeaderListField[]): Buffer {
  const compressor = hpack.compressor.create({ table: { maxSize: 4_096 } });
  compressor.write(list.map((field) => ({ ...field, huffman: field.value.length % 2 === 0 })));
  return compressor.read() ?? Buffer.alloc(0);
}

/** What a decoder makes of blocks that arrive one after another on one connection. */
function outcome(blocks: readonly Buffer[]): 'decoded' | 'refused' {
  const decoder = new HeaderListDecoder(LIMIT_BYTES);
  for (const block of blocks)
    try {
      for (const { name, value } of decoder.decode(block))
        if (typeof name !== 'string' || typeof value !== 'string') throw new TypeError('a field is not text');
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('HTTP/2 header block refused: ')) throw error;
      return 'refused';
    }
  return 'decoded';
}

test('fields survive the way through the encoder and the decoder', async (t) => {
  fc.assert(
    fc.property(fields, (list) => {
      t.same(new HeaderListDecoder(1 << 20).decode(encoded(list)), list);
    }),
    { numRuns: 300 },
  );
});

test('any bytes are decoded or refused: no other exception, and no field that is not text', async (t) => {
  const bytes = fc.uint8Array({ maxLength: BLOCK_BYTES }).map((block) => Buffer.from(block));
  const seen = { decoded: 0, refused: 0 };
  fc.assert(
    fc.property(fc.array(bytes, { minLength: 1, maxLength: 3 }), (blocks) => void (seen[outcome(blocks)] += 1)),
    { numRuns: cases(500, 20_000) },
  );
  t.ok(seen.refused > 100, `${seen.refused} were refused`);
});

test('blocks of a real encoder with some bytes changed or cut are decoded or refused', async (t) => {
  const changed = fc
    .tuple(fields, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }), fc.nat())
    .map(([list, changes, cut]) => {
      const block = Buffer.from(encoded(list));
      for (const [at, byte] of changes) if (block.length > 0) block[at % block.length] = byte;
      return cut % 3 === 0 ? block.subarray(0, cut % (block.length + 1)) : block;
    });
  const seen = { decoded: 0, refused: 0 };
  fc.assert(
    fc.property(fc.array(changed, { minLength: 1, maxLength: 4 }), (blocks) => void (seen[outcome(blocks)] += 1)),
    { numRuns: cases(500, 20_000) },
  );
  t.ok(seen.decoded > 20 && seen.refused > 100, `${seen.decoded} decoded, ${seen.refused} refused`);
});
