import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Reachable bytes, after a garbage collection. */
export function reachableBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
