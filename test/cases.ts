/** `X.long.ts` imports `X.test.ts` and nothing more: the same tests with many cases, in the long tier. */
const isLong = process.argv[1]?.endsWith('.long.js') === true;

/** What a test draws: few cases in `npm test`, many in `npm run test:long`. */
export function cases<T>(few: T, many: T): T {
  return isLong ? many : few;
}
