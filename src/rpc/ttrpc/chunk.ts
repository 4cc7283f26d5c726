/**
 * Several connections on one stream of bytes, as plugins of the Node Resource Interface have them
 * (https://github.com/containerd/nri, pkg/net/multiplex). The stream is cut into chunks: connection, length, and a
 * piece of what that connection carries. Chunks know nothing of messages. Pure: bytes in, pieces out.
 */
import { MESSAGE_HEADER_BYTES, MESSAGE_LIMIT_BYTES } from './message.js';

export const CHUNK_HEADER_BYTES = 8;
/** A whole message of ttrpc. */
export const CHUNK_LIMIT_BYTES = MESSAGE_HEADER_BYTES + MESSAGE_LIMIT_BYTES;

/**
 * The Go peer loses its connection to a chunk that is larger than what it is about to read: 4096 bytes at the beginning
 * of a message, then what the message lacks.
 */
const FIRST_CHUNK_BYTES = 4096;

/** One message as chunks of a connection, such that every peer can take them; `message` is a whole one. */
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

/** A piece of what one connection carries. */
export interface Piece {
  readonly connection: number;
  readonly bytes: Uint8Array;
}

/** Takes a stream of chunks apart. Holds nothing but a header: pieces are passed on as they come. */
export class ChunkReader {
  readonly #header = Buffer.alloc(CHUNK_HEADER_BYTES);
  #headerBytes = 0;
  #connection = 0;
  #leftBytes = 0;

  /** Takes the next bytes; answers what they bring to each connection. Throws on a chunk beyond the limit. */
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
