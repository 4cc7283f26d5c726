import type { SuspensionSnapshot } from '../../agent/node/view.js';
import { age, gib } from '../terminal-text.js';

const BY = {
  operator: 'by an operator of the node',
  pod: 'by its pod',
  idle: 'because it was idle',
  turn: 'because others have their turn',
} as const;

/** What happens to a container's GPU memory: since when, how much, who wanted it, and what its programs want. */
export function suspensionText(
  { step, sinceMs, hostBytes, by, held, wantsSinceMs }: SuspensionSnapshot,
  now: number,
): string {
  const asks = wantsSinceMs === null ? '' : `; a program of it has wanted its GPU for ${age(now - wantsSinceMs)}`;
  const hold = held ? '; its calls wait until it is resumed' : '';
  return `${step} ${BY[by]}, since ${age(now - sinceMs)}: ${gib(hostBytes)} GiB on the host${hold}${asks}`;
}
