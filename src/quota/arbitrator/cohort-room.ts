import { NOTHING, of, type Quantities } from '../../manifests/quantities.js';
import { pathTo, type Member } from './cohort-member.js';
import type { WaitingPod } from './waiting-pod.js';

/** Whether the quota of a cohort has room for a workload, with lending and borrowing limits, as the engine decides. */
export function hasRoom(
  root: Member,
  { consumer, uses }: Pick<WaitingPod, 'consumer' | 'uses'>,
  used: ReadonlyMap<string, Quantities>,
): boolean {
  const path = pathTo(root, consumer);
  const last = path.at(-1);
  if (last === undefined) return false;
  for (const [key, amount] of uses) {
    if (amount <= 0 || !last.hard.has(key)) continue;
    // A group above that does not limit the key ends the chain.
    const chain = path.slice(path.findLastIndex(({ hard }) => !hard.has(key)) + 1);
    let room = Infinity;
    for (const member of chain) {
      const { pool, kept, usage } = flowOf(member, key, used);
      if (member === chain[0]) {
        room = pool - usage;
        continue;
      }
      const limit = Math.max(0, pool) - kept - Math.max(0, usage - kept) + (member.borrow?.get(key) ?? Infinity);
      const above = Math.min(room, limit);
      room = kept > usage ? kept - usage + Math.max(0, above) : above;
    }
    if (amount > room) return false;
  }
  return true;
}

/** The pool of a group, what it keeps of it, and what it and its elastic children use of it. */
function flowOf(
  { name, hard, own, lend, children }: Member,
  key: string,
  used: ReadonlyMap<string, Quantities>,
): { readonly pool: number; readonly kept: number; readonly usage: number } {
  let [pool, usage] = [hard.has(key) ? of(own, key) : 0, of(used.get(name) ?? NOTHING, key)];
  for (const child of children) {
    const below = flowOf(child, key, used);
    pool += Math.max(0, below.pool) - below.kept;
    usage += Math.max(0, below.usage - below.kept);
  }
  const has = Math.max(0, pool);
  return { pool, kept: has - Math.min(has, lend?.get(key) ?? Infinity), usage };
}
