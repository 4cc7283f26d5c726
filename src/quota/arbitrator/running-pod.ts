import type { Quantities } from './quantities.js';

/** A pod that holds resources. */
export interface RunningPod {
  /** Unique: a uid, or namespace and name. */
  readonly id: string;
  /** Name of its consumer. */
  readonly consumer: string;
  /** Its requests. */
  readonly uses: Quantities;
  readonly priority: number;
  /** Name of its node; needed where starts are planned on nodes. */
  readonly node?: string | undefined;
  /** Which part of the node it has, where that matters to `ArbitratedNode.fits`: its GPUs. */
  readonly place?: string | undefined;
  /** When it started, milliseconds. Null where that is not known: such pods are chosen by their ids, scattered. */
  readonly startedAt: number | null;
  /** Names of the disruption budgets that guard it; as in `Situation.disruptions`. */
  readonly budgets?: readonly string[] | undefined;
  /** Never a victim: of a daemon set, or of the system. */
  readonly isProtected?: boolean | undefined;
  /** Not a victim now, but one that may be later: its eviction was refused a moment ago. */
  readonly isSpared?: boolean | undefined;
  /** It is going already: what it holds will be free without another eviction. */
  readonly isLeaving?: boolean | undefined;
}

/**
 * Compares pods of one consumer: the lowest priority goes first, then the last that came, and always in the same order.
 */
export function firstToGo(a: RunningPod, b: RunningPod): number {
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.startedAt !== b.startedAt) {
    // Whoever's age nobody knows goes before those of whom it is known that they were there earlier.
    if (a.startedAt === null || b.startedAt === null) return a.startedAt === null ? -1 : 1;
    return b.startedAt - a.startedAt;
  }
  const [one, other] = a.startedAt === null ? [scattered(a.id), scattered(b.id)] : [0, 0];
  return one - other || (a.id < b.id ? -1 : 1);
}

/** A number that says nothing about what the text says: FNV-1a. */
function scattered(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
