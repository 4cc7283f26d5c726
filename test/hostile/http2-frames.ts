/** HTTP/2 as an attacker writes it: frames in any order, with any content (RFC 9113, RFC 7541). */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([header, payload]);
}

export const settings = (): Buffer => frame(FRAME.settings, 0, 0);
export const reset = (stream: number, code = 8): Buffer => frame(FRAME.reset, 0, stream, word(code));

export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** An integer with a prefix of `bits`, below the `high` bits of its first byte. */
function prefixed(value: number, bits: number, high: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.of(high | value);
  const bytes = [high | most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}

const text = (value: string): Buffer => Buffer.concat([prefixed(value.length, 7, 0), Buffer.from(value, 'latin1')]);

/** A field that is not added to the table. */
export const literal = (name: string, value: string): Buffer => Buffer.concat([Buffer.of(0), text(name), text(value)]);
/** A field that is added to the table. */
export const entered = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.of(0x40), text(name), text(value)]);
/** A field of the table; 62 is the latest entry. */
export const indexed = (index: number): Buffer => prefixed(index, 7, 0x80);

export const METHOD = '/vcuda.VCUDAService/RegisterVDevice';

/** The fields of a call, with some in place of the usual ones; null leaves one out. */
export function requestFields(changes: Readonly<Record<string, string | null>> = {}): Buffer {
  const usual: Readonly<Record<string, string | null>> = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': METHOD,
    ':authority': 'localhost',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  return Buffer.concat(
    Object.entries({ ...usual, ...changes }).flatMap(([name, value]) => (value === null ? [] : [literal(name, value)])),
  );
}

/** A message with its prefix; `length` is the length that the prefix announces. */
export function message(content: Buffer, length = content.length, compressed = 0): Buffer {
  return Buffer.concat([Buffer.of(compressed), word(length), content]);
}

/** A registration of a container by its id, encoded. */
export function registration(containerId: string): Buffer {
  return Buffer.concat([Buffer.of(0x22), prefixed(containerId.length, 7, 0), Buffer.from(containerId)]);
}
