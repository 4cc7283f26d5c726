import type { Quantities } from './quantities.js';

/** A pod that waits for a node. */
export interface WaitingPod {
  readonly id: string;
  /** Name of its consumer. */
  readonly consumer: string;
  /** Its requests. */
  readonly uses: Quantities;
  readonly priority: number;
  /** When it came, milliseconds; null where that is not known. */
  readonly since: number | null;
  /** Names of the nodes that it may come to, by selectors, affinity and taints; null for all. */
  readonly nodes: ReadonlySet<string> | null;
  /** The node on which room is kept for it; null for none. */
  readonly nominated?: string | null | undefined;
}

/** Compares waiting pods: who is served first. */
export function firstToStart(a: WaitingPod, b: WaitingPod): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const [one, other] = [a.since ?? Infinity, b.since ?? Infinity];
  if (one !== other) return one < other ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
