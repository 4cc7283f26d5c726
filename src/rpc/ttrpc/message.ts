/**
 * Messages of ttrpc on one connection (https://github.com/containerd/ttrpc, PROTOCOL.md). A header of 10 bytes (length,
 * stream, type, flags; big-endian) and at most 4 MiB of payload. Pure: bytes in, messages out.
 */

export const MESSAGE_HEADER_BYTES = 10;
export const MESSAGE_LIMIT_BYTES = 4 * 1024 * 1024;

export const MESSAGE_TYPE = { request: 1, response: 2, data: 3 } as const;

export interface TtrpcMessage {
  readonly streamId: number;
  /** One of MESSAGE_TYPE, or what a newer peer sends. */
  readonly type: number;
  readonly flags: number;
  /** Null where it exceeded the limit: it was skipped. */
  readonly payload: Buffer | null;
}

/** The bytes of one message. Throws a RangeError on a payload beyond the limit, which no peer would take. */
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

/** What a payload is gathered in at first; it grows with the bytes that came, not with those that were announced. */
const FIRST_BYTES = 4096;

/**
 * Puts the messages of one connection together from pieces of any size. Holds at most twice what came of one message,
 * and nothing of one whose payload exceeds the limit.
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

  /** Takes the next bytes; answers the messages that they complete. */
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
