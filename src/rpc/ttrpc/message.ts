/**
 * Messages of ttrpc on one connection (https://github.com/containerd/ttrpc, PROTOCOL.md). A header of 10 bytes (length,
 * stream, type, flags; big-endian) and at most 4 MiB of payload. Pure: bytes in, messages out.
 */

export const MESSAGE_HEADER_BYTES = 10;
export const MESSAGE_LIMIT_BYTES = 4 * 1024 * 1024;

export const MESSAGE_TYPE = { request: 1, response: 2, data: 3 } as const;

export interface TtrpcMessage {
  readonly streamId: number;
  /** A MESSAGE_TYPE, or an unknown type of a newer peer. */
  readonly type: number;
  readonly flags: number;
  /** Null if it exceeded the limit and was skipped. */
  readonly payload: Buffer | null;
}

/** The bytes of one message. Throws a RangeError for a payload beyond the limit, which every peer refuses. */
export function encodeMessage(message: {
  readonly streamId: number;
  readonly type: number;
  readonly payload: Uint8Array;
}): Buffer {
  const { streamId, type, payload } = message;
  if (payload.length > MESSAGE_LIMIT_BYTES)
    throw new RangeError(`a ttrpc message of ${payload.length} bytes exceeds the limit of ${MESSAGE_LIMIT_BYTES}`);
  const bytes = Buffer.alloc(MESSAGE_HEADER_BYTES + payload.length);
  bytes.writeUInt32BE(payload.length, 0);
  bytes.writeUInt32BE(streamId, 4);
  bytes.writeUInt8(type, 8);
  bytes.set(payload, MESSAGE_HEADER_BYTES);
  return bytes;
}

/** Initial buffer of a payload; it grows with the received bytes, not with the announced length. */
const FIRST_BYTES = 4096;

/**
 * Assembles the messages of one connection from pieces of any size. Buffers at most twice the received part of one
 * message, and nothing of a message whose payload exceeds the limit.
 */
export class MessageReader {
  readonly #limitBytes: number;
  readonly #header = Buffer.alloc(MESSAGE_HEADER_BYTES);
  #headerBytes = 0;
  /** Null while a payload is skipped. */
  #payload: Buffer | null = null;
  #payloadBytes = 0;
  #wantedBytes = 0;

  constructor(limitBytes = MESSAGE_LIMIT_BYTES) {
    this.#limitBytes = limitBytes;
  }

  /** Accepts the next bytes; returns the messages that they complete. */
  feed(bytes: Uint8Array): TtrpcMessage[] {
    const messages: TtrpcMessage[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#headerBytes < MESSAGE_HEADER_BYTES) {
        const part = bytes.subarray(at, at + MESSAGE_HEADER_BYTES - this.#headerBytes);
        this.#header.set(part, this.#headerBytes);
        this.#headerBytes += part.length;
        at += part.length;
        if (this.#headerBytes < MESSAGE_HEADER_BYTES) break;
        this.#wantedBytes = this.#header.readUInt32BE(0);
        this.#payloadBytes = 0;
        this.#payload =
          this.#wantedBytes > this.#limitBytes ? null : Buffer.alloc(Math.min(this.#wantedBytes, FIRST_BYTES));
      } else {
        const part = bytes.subarray(at, at + this.#wantedBytes - this.#payloadBytes);
        this.#gather(part);
        at += part.length;
      }
      if (this.#payloadBytes === this.#wantedBytes) messages.push(this.#take());
    }
    return messages;
  }

  #gather(part: Uint8Array): void {
    const needed = this.#payloadBytes + part.length;
    if (this.#payload !== null) {
      if (needed > this.#payload.length) {
        const larger = Buffer.alloc(Math.min(this.#wantedBytes, Math.max(needed, 2 * this.#payload.length)));
        larger.set(this.#payload);
        this.#payload = larger;
      }
      this.#payload.set(part, this.#payloadBytes);
    }
    this.#payloadBytes = needed;
  }

  #take(): TtrpcMessage {
    const message = {
      streamId: this.#header.readUInt32BE(4),
      type: this.#header.readUInt8(8),
      flags: this.#header.readUInt8(9),
      payload: this.#payload,
    };
    this.#headerBytes = 0;
    this.#payload = null;
    return message;
  }
}
