/**
 * The bodies of answers that callers have not read yet, limited in sum. A body that several answers share counts once.
 */
export class HeldAnswers {
  readonly #mostBytes: number;
  #bytes = 0;
  readonly #shared = new Map<Buffer, number>();

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Holds a body until the returned function is called, once. Null if there is no room; one body alone always has room.
   */
  hold(body: string | Buffer): (() => void) | null {
    const bytes = Buffer.byteLength(body);
    const holders = typeof body === 'string' ? 0 : (this.#shared.get(body) ?? 0);
    if (holders === 0) {
      if (this.#bytes > 0 && this.#bytes + bytes > this.#mostBytes) return null;
      this.#bytes += bytes;
    }
    if (typeof body === 'string') return () => (this.#bytes -= bytes);
    this.#shared.set(body, holders + 1);
    return () => {
      const left = (this.#shared.get(body) ?? 1) - 1;
      if (left > 0) this.#shared.set(body, left);
      else {
        this.#shared.delete(body);
        this.#bytes -= bytes;
      }
    };
  }
}
