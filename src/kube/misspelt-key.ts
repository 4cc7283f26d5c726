import {
  CORE_LIMIT_KEY,
  CPU_AFFINITY_KEY,
  ENFORCEMENT_KEY,
  GPU_SHARE_KEY,
  MEMORY_LIMIT_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  PRIORITY_KEY,
  SHARE_LIMIT_KEY,
  SUSPEND_IDLE_KEY,
  SUSPEND_KEY,
} from '../gpu/annotations.js';
import { SELECTION_KEYS } from '../gpu/gpu-selection.js';
import { CORE_RESIZE_KEY, MEMORY_RESIZE_KEY } from '../manifests/gpu-resize.js';

/** The annotations by which the author of a pod says what its containers get. */
const KEYS = [
  ...SELECTION_KEYS,
  CORE_LIMIT_KEY,
  MEMORY_LIMIT_KEY,
  SHARE_LIMIT_KEY,
  PRIORITY_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  ENFORCEMENT_KEY,
  SUSPEND_KEY,
  SUSPEND_IDLE_KEY,
  CPU_AFFINITY_KEY,
  GPU_SHARE_KEY,
  CORE_RESIZE_KEY,
  MEMORY_RESIZE_KEY,
];

const PREFIX = 'tencent.com/';
/** Two letters that changed their places are two edits. */
const MOST_EDITS = 2;
const LONGEST = Math.max(...KEYS.map((key) => key.length)) + MOST_EDITS;

/**
 * The error in a pod's annotations whose key is almost one of ours: such an annotation would have no effect, and
 * nothing would say so. Null without one. Other keys below the prefix belong to other programs.
 */
export function misspeltKey(annotations: Readonly<Record<string, unknown>>): string | null {
  for (const key of Object.keys(annotations)) {
    if (!key.startsWith(PREFIX) || key.length > LONGEST || KEYS.includes(key)) continue;
    const near = KEYS.filter((known) => Math.abs(known.length - key.length) <= MOST_EDITS);
    const nearest = near
      .map((known) => ({ known, edits: editsBetween(key, known) }))
      .sort((a, b) => a.edits - b.edits)[0];
    if (nearest !== undefined && nearest.edits <= MOST_EDITS)
      return `annotation ${key} has no meaning; write ${nearest.known}`;
  }
  return null;
}

/** How many letters are inserted, removed or replaced to make one text of the other (Levenshtein's distance). */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let at = 1; at <= a.length; at++) {
    const next = [at];
    for (let to = 1; to <= b.length; to++) {
      const replaced = (row[to - 1] ?? 0) + (a[at - 1] === b[to - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
