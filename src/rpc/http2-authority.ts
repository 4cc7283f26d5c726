import { HeaderListDecoder, type HeaderListField } from './header-list.js';

/**
 * Kubelets before 1.26, and every grpc-go client that dials a bare socket path, send that path as `:authority`. Node's
 * HTTP/2 answers such a request with PROTOCOL_ERROR before any handler runs. This rewriter is between socket and server
 * and replaces an authority that Node refuses.
 *
 * It also limits the header lists of every connection: Node's own limits apply only to peers that have acknowledged
 * them, and allow 128 fields of a whole table each.
 *
 * Frame layout: RFC 9113 section 4.1; header compression: RFC 7541 (decoded with the connection's own table, and
 * encoded again as literals without indexing, so that the server's table stays empty and both ends agree).
 */

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const FRAME_HEADER_BYTES = 9;
const FRAME_HEADERS = 0x1;
const FRAME_CONTINUATION = 0x9;
const FLAG_END_HEADERS = 0x4;
const FLAG_PADDED = 0x8;
const FLAG_PRIORITY = 0x20;
/** The default limit of a peer's frames; grpc-js's servers never raise it. */
const FRAME_LIMIT_BYTES = 16_384;
/** Limit for the fields of one request, encoded and decoded. gRPC clients send a few hundred bytes. */
export const HEADER_LIST_LIMIT_BYTES = 8_192;
const ACCEPTED_AUTHORITY = /^[A-Za-z0-9\-._~%!$&'()*+,;=:@[\]]+$/;
const REPLACEMENT = 'localhost';

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
  readonly bytes: Buffer;
}

interface OpenBlock {
  readonly first: Frame;
  readonly block: Buffer[];
  blockBytes: number;
}

export class AuthorityRewriter {
  #pending: Buffer = Buffer.alloc(0);
  #prefaceSeen = false;
  /** A HEADERS frame whose CONTINUATION frames have not arrived yet. */
  #open: OpenBlock | null = null;
  readonly #decoder = new HeaderListDecoder(HEADER_LIST_LIMIT_BYTES);

  /** Accepts bytes of the client and returns the bytes for the server. Throws on bytes that are not HTTP/2. */
  feed(chunk: Buffer): Buffer[] {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const out: Buffer[] = [];
    if (!this.#prefaceSeen) {
      const seen = this.#pending.subarray(0, PREFACE.length);
      if (!PREFACE.subarray(0, seen.length).equals(seen)) throw new Error('not an HTTP/2 connection');
      if (seen.length < PREFACE.length) return out;
      out.push(this.#take(PREFACE.length));
      this.#prefaceSeen = true;
    }
    for (;;) {
      const frame = this.#nextFrame();
      if (frame === null) return out;
      out.push(...this.#handle(frame));
    }
  }

  #take(bytes: number): Buffer {
    const taken = this.#pending.subarray(0, bytes);
    this.#pending = this.#pending.subarray(bytes);
    return taken;
  }

  #nextFrame(): Frame | null {
    if (this.#pending.length < FRAME_HEADER_BYTES) return null;
    const length = this.#pending.readUIntBE(0, 3);
    if (length > FRAME_LIMIT_BYTES)
      throw new Error(`HTTP/2 frame of ${length} bytes exceeds the limit of ${FRAME_LIMIT_BYTES}`);
    if (this.#pending.length < FRAME_HEADER_BYTES + length) return null;
    const bytes = this.#take(FRAME_HEADER_BYTES + length);
    return {
      type: bytes.readUInt8(3),
      flags: bytes.readUInt8(4),
      streamId: bytes.readUInt32BE(5) & 0x7fff_ffff,
      payload: bytes.subarray(FRAME_HEADER_BYTES),
      bytes,
    };
  }

  #handle(frame: Frame): Buffer[] {
    const open = this.#open;
    if (open === null) {
      if (frame.type !== FRAME_HEADERS) return [frame.bytes];
      this.#open = { first: frame, block: [], blockBytes: 0 };
      return this.#extend(this.#open, frame, headerBlockOf(frame));
    }
    if (frame.type !== FRAME_CONTINUATION || frame.streamId !== open.first.streamId)
      throw new Error('HTTP/2 header block is interrupted by another frame');
    return this.#extend(open, frame, frame.payload);
  }

  #extend(open: OpenBlock, frame: Frame, part: Buffer): Buffer[] {
    open.block.push(part);
    // An empty frame counts too: otherwise a block of empty frames would have no end.
    open.blockBytes += part.length + 1;
    if (open.blockBytes > HEADER_LIST_LIMIT_BYTES)
      throw new Error(`HTTP/2 header block exceeds ${HEADER_LIST_LIMIT_BYTES} bytes`);
    if ((frame.flags & FLAG_END_HEADERS) === 0) return [];
    this.#open = null;
    return encodeHeaders(open.first, withAuthority(this.#decoder.decode(Buffer.concat(open.block))));
  }
}

function headerBlockOf(frame: Frame): Buffer {
  let start = 0;
  let padding = 0;
  if ((frame.flags & FLAG_PADDED) !== 0) {
    padding = frame.payload[0] ?? 0;
    start = 1;
  }
  if ((frame.flags & FLAG_PRIORITY) !== 0) start += 5;
  const end = frame.payload.length - padding;
  if (end < start) throw new Error('HTTP/2 HEADERS frame is shorter than its padding');
  return frame.payload.subarray(start, end);
}

/** Trailers have no pseudo-header fields and get none; a request keeps its authority, or gets the replacement. */
function withAuthority(fields: readonly HeaderListField[]): readonly HeaderListField[] {
  if (!fields.some((field) => field.name.startsWith(':'))) return fields;
  const authority = fields.find((field) => field.name === ':authority')?.value ?? '';
  if (ACCEPTED_AUTHORITY.test(authority)) return fields;
  const others = fields.filter((field) => field.name !== ':authority');
  return [{ name: ':authority', value: REPLACEMENT }, ...others];
}

function encodeHeaders(original: Frame, fields: readonly HeaderListField[]): Buffer[] {
  const block = Buffer.concat(
    fields.flatMap((field) => [Buffer.of(0x00), encodeString(field.name), encodeString(field.value)]),
  );
  const frames: Buffer[] = [];
  for (let at = 0; at === 0 || at < block.length; at += FRAME_LIMIT_BYTES) {
    const part = block.subarray(at, at + FRAME_LIMIT_BYTES);
    const last = at + FRAME_LIMIT_BYTES >= block.length;
    const kept = at === 0 ? original.flags & ~(FLAG_PADDED | FLAG_PRIORITY | FLAG_END_HEADERS) : 0;
    const header = Buffer.alloc(FRAME_HEADER_BYTES);
    header.writeUIntBE(part.length, 0, 3);
    header.writeUInt8(at === 0 ? FRAME_HEADERS : FRAME_CONTINUATION, 3);
    header.writeUInt8(kept | (last ? FLAG_END_HEADERS : 0), 4);
    header.writeUInt32BE(original.streamId, 5);
    frames.push(header, part);
  }
  return frames;
}

/** A string literal without Huffman coding, RFC 7541 section 5.2. Header text has one byte per character. */
function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeLength(bytes.length), bytes]);
}

function encodeLength(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const bytes = [127];
  for (let rest = length - 127; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 0x80);
  }
}
