import type { HealthPolicy, XidClass } from './health-policy.js';

/**
 * How a GPU is. `healthy` alone may be given to new containers. `probation`: had an error and rests until a time;
 * `reset`: needs one; `failed`: broken; `lost`: does not answer.
 */
export type HealthStatus = 'healthy' | 'probation' | 'reset' | 'failed' | 'lost';

export interface GpuHealth {
  readonly status: HealthStatus;
  /** Why it is not healthy, for operators and the owners of its pods; null when healthy. */
  readonly reason: string | null;
  readonly sinceMs: number;
  /** When probation ends if nothing more happens; null for every other status. */
  readonly untilMs: number | null;
  /** Times of the transient errors that still count. */
  readonly strikesMs: readonly number[];
}

/** What happened to a GPU, or to all. */
export type HealthEvent =
  | { readonly kind: 'xid'; readonly xid: number }
  | { readonly kind: 'ecc' }
  | { readonly kind: 'lost'; readonly reason: string }
  | { readonly kind: 'found' }
  /** Its driver was loaded anew, the machine booted, or it was reset: what only a reset could cure has had one. */
  | { readonly kind: 'restarted'; readonly reason: string };

/** A GPU that nothing is known against. */
export function freshHealth(nowMs: number): GpuHealth {
  return { status: 'healthy', reason: null, sinceMs: nowMs, untilMs: null, strikesMs: [] };
}

/** Health of a GPU of which it is not known any more what was held against it. */
export function afterUnknown(reason: string, nowMs: number, policy: HealthPolicy): GpuHealth {
  return onProbation([], reason, nowMs, policy);
}

/** Health after an event. An event that changes nothing gives the same object. */
export function afterEvent(health: GpuHealth, event: HealthEvent, nowMs: number, policy: HealthPolicy): GpuHealth {
  switch (event.kind) {
    case 'xid': {
      const known = policy.xids.get(event.xid);
      return afterError(health, known?.class ?? policy.otherwise, xidReason(event.xid, policy), nowMs, policy);
    }
    case 'ecc':
      return afterError(health, policy.uncorrectedEcc, 'memory errors that ECC could not correct', nowMs, policy);
    case 'lost':
      return health.status === 'lost'
        ? health
        : { ...health, status: 'lost', reason: event.reason, sinceMs: nowMs, untilMs: null };
    case 'found':
      // A GPU comes back to the bus through a reset, and with it goes whatever was held against it.
      return health.status === 'lost' ? onProbation([], 'answers again after it was lost', nowMs, policy) : health;
    case 'restarted':
      return health.status === 'reset' || health.status === 'failed' || health.status === 'lost'
        ? onProbation([], event.reason, nowMs, policy)
        : health;
  }
}

/** Health when time has passed: probation that is over is served. */
export function afterTime(health: GpuHealth, nowMs: number): GpuHealth {
  if (health.status !== 'probation' || health.untilMs === null || nowMs < health.untilMs) return health;
  return { status: 'healthy', reason: null, sinceMs: nowMs, untilMs: null, strikesMs: health.strikesMs };
}

/** An XID as operators read it. */
export function xidReason(xid: number, policy: HealthPolicy): string {
  const meaning = policy.xids.get(xid)?.meaning;
  return `XID ${xid}${meaning === undefined ? '' : ` (${meaning})`}`;
}

/** Worse first: an error never makes a GPU look better than it is. */
const SEVERITY: Readonly<Record<HealthStatus, number>> = { lost: 4, failed: 3, reset: 2, probation: 1, healthy: 0 };

function afterError(
  health: GpuHealth,
  error: XidClass,
  reason: string,
  nowMs: number,
  policy: HealthPolicy,
): GpuHealth {
  switch (error) {
    case 'ignored':
      return health;
    case 'transient': {
      const strikesMs = [...health.strikesMs.filter((at) => nowMs - at < policy.strikeWindowMs), nowMs].slice(
        -policy.strikes,
      );
      if (strikesMs.length < policy.strikes) return worse(health, onProbation(strikesMs, reason, nowMs, policy));
      const minutes = Math.ceil(policy.strikeWindowMs / 60_000);
      return worse(health, {
        status: 'reset',
        reason: `${reason}, ${strikesMs.length} such errors within ${minutes} min`,
        sinceMs: nowMs,
        untilMs: null,
        strikesMs,
      });
    }
    case 'reset':
      return worse(health, {
        ...health,
        status: 'reset',
        reason: `${reason}: needs a reset`,
        sinceMs: nowMs,
        untilMs: null,
      });
    case 'fatal':
      return worse(health, { ...health, status: 'failed', reason, sinceMs: nowMs, untilMs: null });
  }
}

/** The worse of two; another error of the same kind leaves all as it is, except that probation starts again. */
function worse(before: GpuHealth, after: GpuHealth): GpuHealth {
  const difference = SEVERITY[after.status] - SEVERITY[before.status];
  if (difference > 0) return after;
  return difference === 0 && after.status === 'probation' ? { ...after, sinceMs: before.sinceMs } : before;
}

function onProbation(strikesMs: readonly number[], reason: string, nowMs: number, policy: HealthPolicy): GpuHealth {
  const restMs = Math.min(policy.longestProbationMs, policy.probationMs * 2 ** Math.max(0, strikesMs.length - 1));
  return { status: 'probation', reason, sinceMs: nowMs, untilMs: nowMs + restMs, strikesMs };
}
