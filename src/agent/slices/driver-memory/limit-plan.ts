/**
 * What limits the groups of a slice should have in the driver, and what to do about those that they have. Pure:
 * docs/design/driver-limits.md has the reasons.
 */
import type { GroupLimits, GroupMemory } from '../../gpus/index.js';
import type { MemoryEnforcer } from './gpu-enforcement.js';

export const NO_LIMITS: GroupLimits = { softBytes: 0, hardBytes: null };

/** All that decides the limits of a container's group on one GPU. */
export interface LimitFacts {
  readonly enforcer: MemoryEnforcer;
  /** The memory limit of the slice now; null: it has none, or it is unenforced. */
  readonly limitBytes: number | null;
  /** What was allocated to the slice: its limit may be lower. Null: no memory was. */
  readonly allocatedBytes: number | null;
  /** What its suspended processes need when they come back; null: it is not suspended. */
  readonly suspendedBytes: number | null;
  /** The control library leaves device memory to the driver, so that nothing else holds it. */
  readonly isLeftToDriver: boolean;
}

/** The limits that a container's group should have; null: the agent has nothing to say about them. */
export function containerLimits(facts: LimitFacts): GroupLimits | null {
  const { enforcer, limitBytes, allocatedBytes, suspendedBytes, isLeftToDriver } = facts;
  if (enforcer.by === 'library' && enforcer.mayHaveLimits !== true) return null;
  if (limitBytes === null || (enforcer.by === 'library' && !isLeftToDriver)) return NO_LIMITS;
  // A restore beyond the limit would end the processes; until then nobody uses what is guaranteed.
  if (suspendedBytes !== null) return { softBytes: 0, hardBytes: Math.max(limitBytes, suspendedBytes) };
  // With dmem a soft limit stays in the groups above when the group goes.
  const isGuaranteed = enforcer.by === 'driver' && enforcer.backend === 'misc';
  return { softBytes: isGuaranteed ? Math.min(limitBytes, allocatedBytes ?? 0) : 0, hardBytes: limitBytes };
}

/**
 * The limits of a pod's group, from those of its containers on one GPU: it exists before its containers do, so their
 * sum holds programs of which the agent learns late.
 */
export function podLimits(containers: readonly (GroupLimits | null)[]): GroupLimits | null {
  let sum = 0;
  for (const limits of containers) {
    if (limits === null) return null;
    if (limits.hardBytes === null) return NO_LIMITS;
    sum += limits.hardBytes;
  }
  return sum === 0 ? NO_LIMITS : { softBytes: 0, hardBytes: sum };
}

/** What to do first about a group: `known` are the limits that it had at the last call; undefined: unknown. */
export function firstStep(
  wanted: GroupLimits | null,
  known: GroupLimits | undefined,
  trustsKnown: boolean,
): 'nothing' | 'read' | 'set' {
  if (wanted === null || (trustsKnown && isSame(known, wanted))) return 'nothing';
  return trustsKnown && known !== undefined ? 'set' : 'read';
}

/** What to do after the driver has told the limits of a group; `set-again`: somebody else changed them. */
export function stepAfterRead(
  wanted: GroupLimits,
  known: GroupLimits | undefined,
  present: GroupMemory,
): 'gone' | 'right' | 'set' | 'set-again' {
  if (present === 'gone') return 'gone';
  if (isSame(limitsIn(present), wanted)) return 'right';
  return isSame(known, wanted) ? 'set-again' : 'set';
}

/** The limits in an answer of the driver. */
export function limitsIn(present: Exclude<GroupMemory, 'gone'>): GroupLimits {
  return present === 'none' ? NO_LIMITS : { softBytes: present.softBytes, hardBytes: present.hardBytes };
}

export function isSame(a: GroupLimits | undefined, b: GroupLimits): boolean {
  return a?.softBytes === b.softBytes && a.hardBytes === b.hardBytes;
}

const MIB = 2 ** 20;

/** Limits in words. */
export function wordsOf({ hardBytes }: GroupLimits): string {
  return hardBytes === null ? 'no limit' : `${Math.floor(hardBytes / MIB)} MiB`;
}
