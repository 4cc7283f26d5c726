import { cases } from '../../cases.js';

/** Number of mutated inputs that a fuzz test tries; more with `FUZZ_INPUTS=10000000`. */
export const FUZZ_INPUTS = Number(process.env['FUZZ_INPUTS'] ?? cases(10_000, 100_000));

/** Numbers below `2 ** 32` that depend on the seed alone (xorshift32). */
export function seededNumbers(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>>= 0);
  };
}

const TELLING = [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/**
 * A copy of `original` with one to eight mutations: a byte or word replaced, a range copied over another, the end cut
 * off.
 */
export function mutate(original: Buffer, next: () => number): Buffer {
  let bytes = Buffer.from(original);
  for (let changes = 1 + (next() % 8); changes > 0 && bytes.length > 8; changes -= 1) {
    const at = next() % (bytes.length - 4);
    switch (next() % 6) {
      case 0:
        bytes[at] = next() & 0xff;
        break;
      case 1:
        bytes.writeUInt32LE(next(), at);
        break;
      case 2:
      case 3:
        bytes.writeUInt32LE(TELLING[next() % TELLING.length] ?? 0, at & ~3);
        break;
      case 4:
        bytes.copy(bytes, at, next() % bytes.length);
        break;
      default:
        if (next() % 4 === 0) bytes = bytes.subarray(0, next() % bytes.length);
    }
  }
  return bytes;
}
