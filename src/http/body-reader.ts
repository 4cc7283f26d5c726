import type { IncomingMessage } from 'node:http';
import { RefusedRequest } from './answer.js';
import type { ListenerLimits } from './limits.js';

/** Chunks up to this size are joined: a separate chunk of one byte takes a hundred bytes of memory. */
const SMALL_CHUNK_BYTES = 512;

/** Bytes up to which a body is small: most objects that people write. */
const SMALL_BODY_BYTES = 128 << 10;
/** The part of the memory for bodies that large ones may take. The rest is kept for small ones. */
const LARGE_PART = 3 / 4;

type BodyLimits = Pick<ListenerLimits, 'bodyBytes' | 'bodiesBytes' | 'bodiesBytesPerAddress'>;

/** Bytes of bodies in memory. */
interface Held {
  all: number;
  /** Of large bodies. */
  large: number;
}

/**
 * Reads request bodies within limits: of one body, and of all bodies in memory, in total and per address. One address
 * may speak for many users, as an API server does, so that large bodies of one of them leave room for small ones.
 */
export class BodyReader {
  readonly #limits: BodyLimits;
  readonly #held: Held = { all: 0, large: 0 };
  readonly #heldOf = new Map<string, Held>();

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Bytes of bodies that are in memory now. */
  get heldBytes(): number {
    return this.#held.all;
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
    let bytes = 0;
    let held: Held = { all: 0, large: 0 };
    const release = (): void => {
      chunks = [];
      this.#hold(address, { all: -held.all, large: -held.large });
      held = { all: 0, large: 0 };
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (refused.by !== null) return;
      const isLarge = Math.max(announced, bytes) > SMALL_BODY_BYTES;
      const more = { all: chunk.length, large: isLarge ? bytes - held.large : 0 };
      if (bytes > bodyBytes) refused.by = tooLarge();
      else if (!this.#hasRoom(address, more))
        refused.by = new RefusedRequest(503, 'too many request bodies in memory; try again', { 'retry-after': '1' });
      if (refused.by === null) {
        addChunk(chunks, chunk);
        held = { all: held.all + more.all, large: held.large + more.large };
        this.#hold(address, more);
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

  #hasRoom(address: string, { all, large }: Held): boolean {
    const { bodiesBytes, bodiesBytesPerAddress } = this.#limits;
    const fits = (held: Held, most: number): boolean =>
      held.all + all <= most && (large === 0 || held.large + large <= most * LARGE_PART);
    return fits(this.#held, bodiesBytes) && fits(this.#heldOf.get(address) ?? NOTHING, bodiesBytesPerAddress);
  }

  #hold(address: string, { all, large }: Held): void {
    this.#held.all += all;
    this.#held.large += large;
    const held = this.#heldOf.get(address) ?? { all: 0, large: 0 };
    held.all += all;
    held.large += large;
    if (held.all === 0) this.#heldOf.delete(address);
    else this.#heldOf.set(address, held);
  }
}

const NOTHING: Held = { all: 0, large: 0 };

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
