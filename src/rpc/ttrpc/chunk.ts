/**
 * Several connections on one byte stream, as plugins of the Node Resource Interface have them
 * (https://github.com/containerd/nri, pkg/net/multiplex). The stream consists of chunks: connection, length, and a
 * piece of that connection's data. Chunks are independent of messages. Pure: bytes in, pieces out.
 */
import { MESSAGE_HEADER_BYTES, MESSAGE_LIMIT_BYTES } from './message.js';

const CHUNK_HEADER_BYTES = 8;
/** Size of a whole ttrpc message. */
export const CHUNK_LIMIT_BYTES = MESSAGE_HEADER_BYTES + MESSAGE_LIMIT_BYTES;

/**
 * The Go peer loses its connection to a chunk that is larger than its next read: 4096 bytes at the beginning of a
 * message, then the rest of the message.
 */
const FIRST_CHUNK_BYTES = 4096;

/** One whole message as chunks of a connection that every peer can read. */
export function encodeChunks(connection: number, message: Buffer): Buffer {
  const parts = [message.subarray(0, FIRST_CHUNK_BYTES), message.subarray(FIRST_CHUNK_BYTES)];
  return Buffer.concat(parts.filter(({ length }) => length > 0).flatMap((part) => [header(connection, part), part]));
}

function header(connection: number, part: Buffer): Buffer {
  const bytes = Buffer.alloc(CHUNK_HEADER_BYTES);
  bytes.writeUInt32BE(connection, 0);
  bytes.writeUInt32BE(part.length, 4);
  return bytes;
}

/** A piece of one connection's data. */
export interface Piece {
  readonly connection: number;
  readonly bytes: Uint8Array;
}

/** Splits a stream of chunks. Buffers only a header: pieces are passed on as they arrive. */
export class ChunkReader {
  readonly #header = Buffer.alloc(CHUNK_HEADER_BYTES);
  #headerBytes = 0;
  #connection = 0;
  #leftBytes = 0;

  /** Accepts the next bytes; returns the pieces for each connection. Throws on a chunk beyond the limit. */
  feed(bytes: Uint8Array): Piece[] {
    const pieces: Piece[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#leftBytes > 0) {
        const part = bytes.subarray(at, at + this.#leftBytes);
        pieces.push({ connection: this.#connection, bytes: part });
        this.#leftBytes -= part.length;
        at += part.length;
        continue;
      }
      const part = bytes.subarray(at, at + CHUNK_HEADER_BYTES - this.#headerBytes);
      this.#header.set(part, this.#headerBytes);
      this.#headerBytes += part.length;
      at += part.length;
      if (this.#headerBytes < CHUNK_HEADER_BYTES) break;
      this.#headerBytes = 0;
      this.#connection = this.#header.readUInt32BE(0);
      this.#leftBytes = this.#header.readUInt32BE(4);
      if (this.#leftBytes > CHUNK_LIMIT_BYTES)
        throw new RangeError(`a chunk of ${this.#leftBytes} bytes exceeds the limit of ${CHUNK_LIMIT_BYTES}`);
    }
    return pieces;
  }
}
