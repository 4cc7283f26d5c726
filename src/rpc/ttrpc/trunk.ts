import type { Socket } from 'node:net';
import { ChunkReader, encodeChunks } from './chunk.js';

/** Bytes that may wait for a peer that does not read; more close the connection. */
const WRITE_LIMIT_BYTES = 8 * 1024 * 1024;

/** Receives one connection's data; an exception closes the trunk. */
export type PieceReceiver = (bytes: Uint8Array) => void;

/**
 * One socket with several connections (see `chunk.ts`). Owns the socket. Pieces for connections without a receiver are
 * dropped, as the Go peer does; invalid bytes close all connections.
 */
export class Trunk {
  readonly #socket: Socket;
  #failure: Error | null = null;

  /** `onClose` is called once, with the error, or null if the peer or `close` ended it. */
  constructor(socket: Socket, receivers: ReadonlyMap<number, PieceReceiver>, onClose: (failure: Error | null) => void) {
    this.#socket = socket;
    const reader = new ChunkReader();
    socket.on('data', (bytes: Buffer) => {
      if (this.#failure !== null) return;
      try {
        for (const piece of reader.feed(bytes)) receivers.get(piece.connection)?.(piece.bytes);
      } catch (error) {
        this.#fail(error as Error);
      }
    });
    socket.on('error', (error) => (this.#failure ??= error));
    // A peer that has closed its side does not read answers either.
    socket.on('end', () => socket.destroy());
    socket.on('close', () => onClose(this.#failure));
  }

  /** Sends one whole message on a connection; does nothing once the trunk is closed. */
  send(connection: number, message: Buffer): void {
    if (this.#socket.destroyed) return;
    this.#socket.write(encodeChunks(connection, message));
    if (this.#socket.writableLength > WRITE_LIMIT_BYTES)
      this.#fail(new Error(`${this.#socket.writableLength} bytes wait for a peer that does not read`));
  }

  close(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#socket.destroy();
  }
}
