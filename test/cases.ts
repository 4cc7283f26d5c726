/** `X.long.ts` imports `X.test.ts` and nothing more: the same tests with many cases, in the long tier. */
const isLong = process.argv[1]?.endsWith('.long.js') === true;

/**
 * What a test draws: few cases in `npm test`, many in `npm run test:long`. How few is a question to `test:mutants`:
 * with seed 11, of 52 mistakes in the record log, the fit simulation, the core of the engine and the extender, few
 * cases noticed 19 and many 20. A mistake that only many notice is a reason for more.
 */
export function cases<T>(few: T, many: T): T {
  return isLong ? many : few;
}
