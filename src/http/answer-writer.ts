import type { ServerResponse } from 'node:http';
import { systemClock } from '../host/clock.js';

/** A body is written in pieces of this size: a connection holds no more than one that its caller has not read. */
const PIECE_BYTES = 32 * 1024;

/** Writes a body as fast as the caller reads; closes the connection if the caller has not read all within `mostMs`. */
export function writeBody(response: ServerResponse, body: string | Buffer, mostMs: number): void {
  if (Buffer.byteLength(body) <= PIECE_BYTES) {
    response.end(body);
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const cancel = systemClock.after(mostMs, () => response.destroy());
  response.once('close', cancel);
  let at = 0;
  const next = (): void => {
    while (at + PIECE_BYTES < bytes.length) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      at += PIECE_BYTES;
      if (!response.write(piece)) {
        response.once('drain', next);
        return;
      }
    }
    response.end(bytes.subarray(at));
  };
  next();
}
