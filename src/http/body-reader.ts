import type { IncomingMessage } from 'node:http';
import { RefusedRequest } from './answer.js';
import type { ListenerLimits } from './limits.js';

/** Reads bodies of requests within limits: of one body, and of all that are held at the same time. */
export class BodyReader {
  readonly #limits: Pick<ListenerLimits, 'bodyBytes' | 'bodiesBytes'>;
  #heldBytes = 0;

  constructor(limits: Pick<ListenerLimits, 'bodyBytes' | 'bodiesBytes'>) {
    this.#limits = limits;
  }

  /** Bytes of bodies that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * The whole body, as text; `release` says that it is needed no more. Rejects with a RefusedRequest where it is too
   * large (413), or where all bodies together are (503). A caller that goes on sending is read to the end, up to twice
   * the limit, so that it sees the answer.
   */
  async read(request: IncomingMessage): Promise<{ readonly text: string; readonly release: () => void }> {
    const { bodyBytes, bodiesBytes } = this.#limits;
    const announced = Number(request.headers['content-length'] ?? 0);
    const tooLarge = (): RefusedRequest =>
      new RefusedRequest(413, `the body is larger than ${bodyBytes} bytes`, { connection: 'close' });
    if (announced > 2 * bodyBytes) throw tooLarge();
    let refusal: RefusedRequest | null = null;
    let chunks: Buffer[] = [];
    let [bytes, held] = [0, 0];
    const release = (): void => {
      this.#heldBytes -= held;
      held = 0;
    };
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > 2 * bodyBytes) break;
        if (refusal !== null) continue;
        if (bytes > bodyBytes) refusal = tooLarge();
        else if (this.#heldBytes + chunk.length > bodiesBytes)
          refusal = new RefusedRequest(503, 'too many requests are read at once; try again', { 'retry-after': '1' });
        if (refusal === null) {
          chunks.push(chunk);
          held += chunk.length;
          this.#heldBytes += chunk.length;
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
    if (refusal === null) return { text: Buffer.concat(chunks).toString('utf8'), release };
    release();
    throw refusal;
  }
}
