import type { Socket } from 'node:net';
import type { Answer } from './answer.js';

/** A first chunk that begins with a whole request for `/healthz` or `/readyz`. */
const PROBE = /^(GET|HEAD) (\/healthz|\/readyz)(?:\?[^ \r\n]*)? HTTP\/1\.[01]\r\n/u;
const MAX_PROBE_BYTES = 4 * 1024;
const REASONS: Readonly<Record<number, string>> = { 200: 'OK', 503: 'Service Unavailable' };

export interface DirectProbeOptions {
  /** Answers of `/healthz` and `/readyz`. */
  readonly answerOf: (path: string) => Answer;
  /** Time for the first bytes of a connection. */
  readonly firstBytesMs: number;
  /** The HTTP server's own listener, for connections that begin with something else. */
  readonly otherwise: (socket: Socket) => void;
}

/**
 * Reads the first bytes of a connection before the HTTP parser. A probe is answered at once, and its connection is
 * closed, so that probes wait for no other request.
 */
export function answerDirectly(socket: Socket, { answerOf, firstBytesMs, otherwise }: DirectProbeOptions): void {
  const late = (): void => void socket.destroy();
  // A caller that disconnects is not an error of the server.
  const failed = (): void => void socket.destroy();
  socket.on('error', failed);
  socket.setTimeout(firstBytesMs, late);
  socket.once('readable', () => {
    const first = socket.read() as Buffer | null;
    // The caller has closed the connection without a byte.
    if (first === null) return void socket.destroy();
    const probe = readProbe(first);
    if (probe !== null) return sendAndClose(socket, probe.isHead, answerOf(probe.path));
    socket.setTimeout(0);
    socket.off('timeout', late);
    socket.off('error', failed);
    socket.unshift(first);
    otherwise(socket);
    return undefined;
  });
}

function readProbe(first: Buffer): { readonly path: string; readonly isHead: boolean } | null {
  // Most connections begin with another path, and need no search for the end of the header.
  const line = PROBE.exec(first.toString('latin1', 0, 256));
  if (line === null || !first.subarray(0, MAX_PROBE_BYTES).includes('\r\n\r\n')) return null;
  return { path: line[2] ?? '', isHead: line[1] === 'HEAD' };
}

function sendAndClose(socket: Socket, isHead: boolean, { status, type, body }: Answer): void {
  const header = [
    `HTTP/1.1 ${status} ${REASONS[status] ?? ''}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.write(`${header.join('\r\n')}\r\n\r\n${isHead ? '' : body.toString()}`);
  socket.destroySoon();
}
