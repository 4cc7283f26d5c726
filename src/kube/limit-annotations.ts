import {
  CORE_LIMIT_KEY,
  ENFORCEMENT_KEY,
  MEMORY_LIMIT_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  PRIORITY_KEY,
  SHARE_LIMIT_KEY,
  SUSPEND_IDLE_KEY,
  SUSPEND_KEY,
} from '../gpu/annotations.js';
import { parsePriority } from '../gpu/priority.js';
import { parseAnyCores, parseCores, parseMemory, valueFor } from '../manifests/container-value.js';
import { readDuration } from '../manifests/duration.js';

/** How an annotation with a value for each container, or one for all, is read. */
export interface ContainerAnnotation<T> {
  readonly key: string;
  /** Null for a value that means nothing. */
  readonly parse: (text: string) => T | null;
  /** The values, in words. */
  readonly expected: string;
}

/** A word of some. */
function word<const T extends string>(key: string, words: readonly T[], expected: string): ContainerAnnotation<T> {
  return { key, parse: (text) => words.find((known) => known === text) ?? null, expected };
}

/** What the owner of a pod asks for a container. */
export const SUSPEND_REQUESTS = ['suspended', 'held', 'running'] as const;
export type SuspendRequest = (typeof SUSPEND_REQUESTS)[number];

function parseSuspend(text: string): SuspendRequest | null {
  const [state = '', mark = ''] = text.split('@', 2);
  return mark.length > 40 ? null : (SUSPEND_REQUESTS.find((known) => known === state) ?? null);
}

/** Containers that are idle for a shorter time are not suspended. */
const LEAST_IDLE_MS = 1_000;

/** Milliseconds; Infinity for `never`, null for anything else. */
export function parseIdle(text: string): number | null {
  if (text === 'never') return Infinity;
  const ms = readDuration(text);
  return ms >= LEAST_IDLE_MS ? ms : null;
}

/** The annotations by which a pod limits its containers, with their readers. */
export const LIMIT_ANNOTATIONS = {
  memory: {
    key: MEMORY_LIMIT_KEY,
    parse: parseMemory,
    expected: 'a number of blocks of 256 MiB, or of bytes with a unit such as 1536Mi',
  },
  share: { key: SHARE_LIMIT_KEY, parse: parseCores, expected: 'a number of cores from 1 to 100' },
  softLimit: { key: CORE_LIMIT_KEY, parse: parseAnyCores, expected: 'a positive number of cores' },
  priority: { key: PRIORITY_KEY, parse: parsePriority, expected: 'high, normal or low' },
  memoryClass: word(MEMORY_OVERSUBSCRIBE_KEY, ['high', 'normal', 'low'], 'high, normal or low'),
  suspend: { key: SUSPEND_KEY, parse: parseSuspend, expected: 'suspended, held or running, and after @ the time' },
  suspendIdle: { key: SUSPEND_IDLE_KEY, parse: parseIdle, expected: 'never, or a time of at least 1s such as 15m' },
  enforcement: word(ENFORCEMENT_KEY, ['limits', 'none'], 'limits or none'),
} as const;

/**
 * The value of such an annotation for a container: undefined if it has none, and a sentence in `problem` for a value
 * that means nothing.
 */
export function readContainerAnnotation<T>(
  { key, parse, expected }: ContainerAnnotation<T>,
  annotation: (key: string) => string | undefined,
  container: string,
): { readonly value?: T; readonly problem?: string } {
  const whole = annotation(key);
  const text = whole === undefined ? undefined : valueFor(whole, container);
  if (text === undefined) return {};
  const value = parse(text);
  return value === null ? { problem: `${key}: ${JSON.stringify(text.slice(0, 64))} is not ${expected}` } : { value };
}
