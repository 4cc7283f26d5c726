import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { AuthorityRewriter } from './http2-authority.js';

/**
 * A connection whose incoming bytes pass through an AuthorityRewriter. Owns the socket: both end and close together.
 * Bytes that are not HTTP/2, exceed a limit of the rewriter, or come after `bytesLimit` bytes end it with an error.
 */
export class AuthorityStream extends Duplex {
  readonly #socket: Socket;

  constructor(socket: Socket, bytesLimit = Infinity) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    const rewriter = new AuthorityRewriter();
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      if (this.destroyed) return;
      let wanted = true;
      try {
        // Counted before they are processed.
        bytes += chunk.length;
        if (bytes > bytesLimit) throw new Error(`more than ${bytesLimit} bytes on one connection`);
        for (const part of rewriter.feed(chunk)) if (part.length > 0) wanted = this.push(part);
      } catch (error) {
        this.destroy(error as Error);
        return;
      }
      if (!wanted) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    // The server reports a broken connection to its callers; without this listener Node would end the process.
    this.on('error', () => undefined);
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, callback);
  }

  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    this.#socket.write(Buffer.concat(chunks.map((entry) => entry.chunk)), callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#socket.destroy();
    callback(error);
  }
}
