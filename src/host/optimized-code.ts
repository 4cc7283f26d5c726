import { setFlagsFromString } from 'node:v8';

/** Bytes of bytecode: a function of about forty lines. With half as many, steering would stay slow. */
const MOST_BYTES = 700;

/**
 * From now on, V8 optimizes only small functions; code that is optimized already stays. Otherwise the compiler's
 * threads use as much CPU time as the whole idle agent, and small functions give most of the gain.
 */
export function optimizeSmallFunctionsOnly(): void {
  setFlagsFromString(`--max-optimized-bytecode-size=${MOST_BYTES}`);
}
