const VARIABLE = 'GPU_MANAGER_TIME_FACTOR';

/** How many times longer tests wait for other programs; set it for a machine that is slow. By default 1. */
const FACTOR = factorOf(process.env[VARIABLE]);

/**
 * The time limit of a test file, and of each test in it: it only turns a hang into a failure. A machine with four times
 * as many busy processes as processors needs a part of it.
 */
export const FILE_LIMIT_SECONDS = timeLimit(600);

/** The time limit on this machine for what may take `usual`, in the same unit, on a machine of usual speed. */
export function timeLimit(usual: number): number {
  return usual * FACTOR;
}

function factorOf(text: string | undefined): number {
  if (text === undefined) return 1;
  const factor = Number(text);
  if (!(factor >= 1 && factor <= 100)) throw new Error(`${VARIABLE}: expected a number from 1 to 100, found ${text}`);
  return factor;
}
