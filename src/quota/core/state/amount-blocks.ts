/** A range of numbers in a block. */
export interface Cells {
  readonly values: Float64Array;
  readonly start: number;
}

const BLOCK = 1024;

/**
 * Memory for the amounts of many groups, side by side in blocks: a decision reads those of several groups, and an array
 * of its own for each would scatter them. A block is freed with the last group in it.
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
