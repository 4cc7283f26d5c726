/**
 * Priority between the slices of one GPU. A high slice has precedence over low ones at each launch; normal slices only
 * follow their shares.
 */
import type { PRIORITY } from '../abi/vgpu-abi.js';

export type Priority = keyof typeof PRIORITY;

const RANK: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/** The values, highest first. */
export const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** Null for text that is no priority. */
export function parsePriority(text: string): Priority | null {
  return PRIORITIES.find((priority) => priority === text) ?? null;
}

export function isHigher(priority: Priority, than: Priority): boolean {
  return RANK[priority] > RANK[than];
}
