import { crc32 } from 'node:zlib';

/**
 * A journal file is a sequence of frames: four bytes of magic, length and CRC-32 of the payload (both little-endian
 * u32), and the payload. A frame is written with one write and is durable before the next one begins. Therefore only
 * the last frame of a file can be torn, and a torn frame was never acknowledged.
 */

const MAGIC = Buffer.from('GQF1', 'latin1');
const HEADER_BYTES = 12;

/** Longer frames are rejected, because a damaged header may claim any length. */
const MAX_PAYLOAD_BYTES = 1 << 30;

export function frameOf(payload: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  MAGIC.copy(header);
  header.writeUInt32LE(payload.length, 4);
  header.writeUInt32LE(crc32(payload), 8);
  return Buffer.concat([header, payload]);
}

export interface ScannedFrames {
  readonly payloads: readonly Buffer[];
  /** Bytes of complete frames; the rest is torn. */
  readonly goodBytes: number;
  /** Position of damage before a complete frame, which a crash cannot explain; null for none. */
  readonly damagedAt: number | null;
}

export function scanFrames(file: Buffer): ScannedFrames {
  const payloads: Buffer[] = [];
  let at = 0;
  for (let payload = frameAt(file, at); payload !== null; payload = frameAt(file, at)) {
    payloads.push(payload);
    at += HEADER_BYTES + payload.length;
  }
  return { payloads, goodBytes: at, damagedAt: at < file.length && hasFrameAfter(file, at + 1) ? at : null };
}

/** The payload of the first frame; null if it is not complete. */
export function firstPayload(file: Buffer): Buffer | null {
  return frameAt(file, 0);
}

function frameAt(file: Buffer, at: number): Buffer | null {
  if (at + HEADER_BYTES > file.length || file.compare(MAGIC, 0, MAGIC.length, at, at + MAGIC.length) !== 0) return null;
  const length = file.readUInt32LE(at + 4);
  if (length > MAX_PAYLOAD_BYTES || at + HEADER_BYTES + length > file.length) return null;
  const payload = file.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
  return crc32(payload) === file.readUInt32LE(at + 8) ? payload : null;
}

function hasFrameAfter(file: Buffer, from: number): boolean {
  for (let at = file.indexOf(MAGIC, from); at >= 0; at = file.indexOf(MAGIC, at + 1))
    if (frameAt(file, at) !== null) return true;
  return false;
}
