/** A range of numbers in a block. */
export interface Cells {
  readonly values: Float64Array;
  readonly start: number;
}

const BLOCK = 1024;

/**
 * Allocates the amounts of many groups in shared blocks: a decision reads several groups, and separate arrays would
 * be scattered in memory. A block is freed with the last group in it.
 */
export class AmountBlocks {
  #block = new Float64Array(0);
  #taken = 0;

  /** Cells that are zero. */
  take(length: number): Cells {
    if (this.#taken + length > this.#block.length) {
      this.#block = new Float64Array(Math.max(BLOCK, length));
      this.#taken = 0;
    }
    const start = this.#taken;
    this.#taken += length;
    return { values: this.#block, start };
  }
}
