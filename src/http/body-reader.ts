import type { IncomingMessage } from 'node:http';
import { RefusedRequest } from './answer.js';
import type { ListenerLimits } from './limits.js';

type BodyLimits = Pick<ListenerLimits, 'bodyBytes' | 'bodiesBytes' | 'bodiesBytesPerAddress'>;

/** Reads bodies of requests within limits: of one body, and of all that are held at the same time, in sum and from one
 * address. */
export class BodyReader {
  readonly #limits: BodyLimits;
  #heldBytes = 0;
  readonly #heldOf = new Map<string, number>();

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Bytes of bodies that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * The whole body; `release` says that it is needed no more. Rejects with a RefusedRequest where it is too
   * large (413), or where all bodies together are (503). A caller that goes on sending is read to the end, up to twice
   * the limit, so that it sees the answer.
   */
  async read(request: IncomingMessage): Promise<{ readonly bytes: Buffer; readonly release: () => void }> {
    const { bodyBytes } = this.#limits;
    const address = request.socket.remoteAddress ?? '';
    const announced = Number(request.headers['content-length'] ?? 0);
    const tooLarge = (): RefusedRequest =>
      new RefusedRequest(413, `the body is larger than ${bodyBytes} bytes`, { connection: 'close' });
    if (announced > 2 * bodyBytes) throw tooLarge();
    let refusal: RefusedRequest | null = null;
    let chunks: Buffer[] = [];
    let [bytes, held] = [0, 0];
    const release = (): void => {
      this.#hold(address, -held);
      held = 0;
    };
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > 2 * bodyBytes) break;
        if (refusal !== null) continue;
        if (bytes > bodyBytes) refusal = tooLarge();
        else if (!this.#hasRoom(address, chunk.length))
          refusal = new RefusedRequest(503, 'too many requests are read at once; try again', { 'retry-after': '1' });
        if (refusal === null) {
          chunks.push(chunk);
          held += chunk.length;
          this.#hold(address, chunk.length);
        } else {
          chunks = [];
          release();
        }
      }
    } catch (error) {
      release();
      // The caller went, or took longer than it may.
      throw new RefusedRequest(400, `the body was not read to its end: ${(error as Error).message}`);
    }
    if (refusal === null) return { bytes: Buffer.concat(chunks), release };
    release();
    throw refusal;
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
