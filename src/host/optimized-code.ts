import { setFlagsFromString } from 'node:v8';

/** Bytes of bytecode: a function of about twenty lines. */
const MOST_BYTES = 300;

/**
 * From now on, V8 optimizes small functions only; code that is optimized already stays. A program that works a little
 * every second, for months, would have each of its functions optimized in the first hour: for an agent at rest, the
 * compiler's threads took as much time as all that it does, and small functions have most of the gain.
 */
export function optimizeSmallFunctionsOnly(): void {
  setFlagsFromString(`--max-optimized-bytecode-size=${MOST_BYTES}`);
}
