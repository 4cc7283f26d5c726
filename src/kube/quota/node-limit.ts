import { CASH, type Key } from '../../manifests/key.js';
import type { LabelSelector } from '../../manifests/label-selector.js';
import { readQuantity, type Quantity } from '../../manifests/quantity.js';
import type { Hard } from '../../quota/index.js';
import { list, record, text } from '../json.js';

/** A limit of a group that is a part of what nodes have. */
export interface NodeLimit {
  /** A key of the group's quota, such as `requests.nvidia.com/gpu.A100`. */
  readonly key: Key;
  /** Part of the sum of the nodes, 0 to 100. */
  readonly percent: number;
  /** The nodes that count; null for all. */
  readonly nodeSelector: LabelSelector | null;
  readonly min: Quantity | null;
  readonly max: Quantity | null;
  /** How long nodes are missing before the limit shrinks; seconds. */
  readonly shrinkAfterSeconds: number;
}

/** A limit from nodes as the controller computed it, in `status.nodeLimits` by key. */
export interface ComputedLimit {
  /** The limit that holds. */
  readonly limit: string;
  /** What the nodes had when it was computed, and how many counted. */
  readonly total: string;
  readonly nodes: number;
  /** The lower limit that follows unless nodes come back, and when; RFC 3339. */
  readonly shrinksTo?: string;
  readonly shrinksAt?: string;
}

export type ComputedLimits = Readonly<Record<Key, ComputedLimit>>;

const SHRINK_AFTER_SECONDS = 300;

/** Reads `spec.fromNodes` of a group. */
export function readNodeLimits(written: unknown): readonly NodeLimit[] {
  return list(written).map((entry) => {
    const { key, percent, nodeSelector, min, max, shrinkAfterSeconds } = record(entry);
    return {
      key: text(key),
      percent: typeof percent === 'number' ? percent : 0,
      nodeSelector: nodeSelector ?? null,
      min: (min ?? null) as Quantity | null,
      max: (max ?? null) as Quantity | null,
      shrinkAfterSeconds: typeof shrinkAfterSeconds === 'number' ? shrinkAfterSeconds : SHRINK_AFTER_SECONDS,
    };
  });
}

/** The quota of a group with its limits from nodes; one that is not computed yet is its minimum, or 0. */
export function withNodeLimits(hard: Hard, limits: readonly NodeLimit[], computed: ComputedLimits): Hard {
  if (limits.length === 0) return hard;
  return { ...hard, ...Object.fromEntries(limits.map(({ key, min }) => [key, computed[key]?.limit ?? min ?? 0])) };
}

/** Why limits cannot be computed from nodes; null if they can. */
export function nodeLimitProblem(limits: readonly NodeLimit[], hard: Hard): string | null {
  const seen = new Set<Key>();
  for (const [index, { key, percent, min, max }] of limits.entries()) {
    const at = `spec.fromNodes[${index}]`;
    if (
      key.startsWith(CASH) ||
      key.startsWith('count/') ||
      /^(?:requests\.|limits\.)?(?:gpus|gpu\.cards|gpu\.memory)(?:\.|$)/u.test(key)
    )
      return `${at}.key: expected a key of a resource that nodes have, found "${key}"; put it into spec.hard`;
    if (Object.hasOwn(hard, key)) return `${at}.key: "${key}" is in spec.hard too; remove it from one of them`;
    if (seen.has(key)) return `${at}.key: "${key}" is there twice; remove one`;
    seen.add(key);
    if (!(percent >= 0 && percent <= 100)) return `${at}.percent: expected 0 to 100, found ${percent}`;
    const [least, most] = [min, max].map((bound) => (bound === null ? null : readQuantity(key, bound, 'down')));
    for (const [name, read] of [
      ['min', least],
      ['max', most],
    ] as const) {
      if (read?.ok === false) return `${at}.${name}: ${read.reason}`;
      if (read?.ok === true && read.amount < 0) return `${at}.${name}: expected 0 or more, found a negative quantity`;
    }
    if (least?.ok === true && most?.ok === true && BigInt(least.amount) > BigInt(most.amount))
      return `${at}: min ${String(min)} is larger than max ${String(max)}`;
  }
  return null;
}
