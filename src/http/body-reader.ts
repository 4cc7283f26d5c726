import type { IncomingMessage } from 'node:http';
import { RefusedRequest } from './answer.js';
import type { ListenerLimits } from './limits.js';

/** Chunks up to this size are joined: a separate chunk of one byte takes a hundred bytes of memory. */
const SMALL_CHUNK_BYTES = 512;

type BodyLimits = Pick<ListenerLimits, 'bodyBytes' | 'bodiesBytes' | 'bodiesBytesPerAddress'>;

/** Reads request bodies within limits: of one body, and of all bodies in memory, in total and per address. */
export class BodyReader {
  readonly #limits: BodyLimits;
  #heldBytes = 0;
  readonly #heldOf = new Map<string, number>();

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Bytes of bodies that are in memory now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Reads the whole body; call `release` when its bytes are no longer in use: until then they count against the limits.
   * Rejects with a RefusedRequest if it is too large (413), or if all bodies together are (503). A body beyond the
   * limit is still read, up to twice the limit, so that the caller sees the answer.
   */
  async read(request: IncomingMessage): Promise<{ readonly bytes: Buffer; readonly release: () => void }> {
    const { bodyBytes } = this.#limits;
    const address = request.socket.remoteAddress ?? '';
    const announced = Number(request.headers['content-length'] ?? 0);
    const tooLarge = (): RefusedRequest =>
      new RefusedRequest(413, `the body is larger than ${bodyBytes} bytes`, { connection: 'close' });
    if (announced > 2 * bodyBytes) throw tooLarge();
    const refused: { by: RefusedRequest | null } = { by: null };
    let chunks: Buffer[] = [];
    let [bytes, held] = [0, 0];
    const release = (): void => {
      chunks = [];
      this.#hold(address, -held);
      held = 0;
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (refused.by !== null) return;
      if (bytes > bodyBytes) refused.by = tooLarge();
      else if (!this.#hasRoom(address, chunk.length))
        refused.by = new RefusedRequest(503, 'too many request bodies in memory; try again', { 'retry-after': '1' });
      if (refused.by === null) {
        addChunk(chunks, chunk);
        held += chunk.length;
        this.#hold(address, chunk.length);
      } else release();
    };
    try {
      await eachChunk(request, (chunk) => {
        take(chunk);
        return bytes <= 2 * bodyBytes;
      });
    } catch (error) {
      release();
      // The caller disconnected, or took too long.
      throw new RefusedRequest(400, `the body is incomplete: ${(error as Error).message}`);
    }
    if (refused.by === null) {
      const whole = Buffer.concat(chunks);
      chunks = [];
      return { bytes: whole, release };
    }
    release();
    throw refused.by;
  }

  #hasRoom(address: string, bytes: number): boolean {
    const { bodiesBytes, bodiesBytesPerAddress } = this.#limits;
    return this.#heldBytes + bytes <= bodiesBytes && (this.#heldOf.get(address) ?? 0) + bytes <= bodiesBytesPerAddress;
  }

  #hold(address: string, bytes: number): void {
    this.#heldBytes += bytes;
    const held = (this.#heldOf.get(address) ?? 0) + bytes;
    if (held === 0) this.#heldOf.delete(address);
    else this.#heldOf.set(address, held);
  }
}

/**
 * Calls `take` with each chunk of the body; false discards the rest, and closes the connection. By listeners: an
 * iterator of the request takes several times as long for a short body. Rejects if the caller disconnects.
 */
function eachChunk(request: IncomingMessage, take: (chunk: Buffer) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const closed = (): void => reject(new Error('aborted'));
    if (request.destroyed) return closed();
    request.on('data', (chunk: Buffer) => {
      if (request.destroyed || take(chunk)) return;
      resolve();
      request.destroy();
    });
    request.once('end', () => {
      // Every request is closed after its end, and an error costs more than the rest of this function.
      request.off('close', closed);
      resolve();
    });
    request.once('error', reject);
    request.once('close', closed);
  });
}

function addChunk(chunks: Buffer[], chunk: Buffer): void {
  const last = chunks.at(-1);
  if (last !== undefined && last.length + chunk.length <= SMALL_CHUNK_BYTES)
    chunks[chunks.length - 1] = Buffer.concat([last, chunk]);
  else chunks.push(chunk);
}
