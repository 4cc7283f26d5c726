import type { HealthPolicy, XidClass } from './health-policy.js';

/**
 * Health of a GPU. Only a `healthy` one is given to new containers. `probation`: had an error and is unusable until a
 * certain time; `reset`: needs a reset; `failed`: broken; `lost`: does not answer.
 */
export type HealthStatus = 'healthy' | 'probation' | 'reset' | 'failed' | 'lost';

export interface GpuHealth {
  readonly status: HealthStatus;
  /** Why it is not healthy, for operators and the owners of its pods; null when healthy. */
  readonly reason: string | null;
  readonly sinceMs: number;
  /** When the probation ends without a further error; null for every other status. */
  readonly untilMs: number | null;
  /** Times of the transient errors that still count. */
  readonly strikesMs: readonly number[];
}

/** An event of one GPU, or of all. */
export type HealthEvent =
  | { readonly kind: 'xid'; readonly xid: number }
  | { readonly kind: 'ecc' }
  | { readonly kind: 'lost'; readonly reason: string }
  | { readonly kind: 'found' }
  /** The driver was loaded again, the machine booted, or the GPU was reset, which ends errors that need a reset. */
  | { readonly kind: 'restarted'; readonly reason: string };

/** The health of a GPU without errors. */
export function freshHealth(nowMs: number): GpuHealth {
  return { status: 'healthy', reason: null, sinceMs: nowMs, untilMs: null, strikesMs: [] };
}

/** The health of a GPU whose history was lost. */
export function afterUnknown(reason: string, nowMs: number, policy: HealthPolicy): GpuHealth {
  return onProbation([], reason, nowMs, policy);
}

/** The health after an event; the same object if nothing changes. */
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
      // A lost GPU returns to the bus through a reset, which ends its earlier errors.
      return health.status === 'lost' ? onProbation([], 'answers again after it was lost', nowMs, policy) : health;
    case 'restarted':
      return health.status === 'reset' || health.status === 'failed' || health.status === 'lost'
        ? onProbation([], event.reason, nowMs, policy)
        : health;
  }
}

/** The health at a later time: an expired probation ends. */
export function afterTime(health: GpuHealth, nowMs: number): GpuHealth {
  if (health.status !== 'probation' || health.untilMs === null || nowMs < health.untilMs) return health;
  return { status: 'healthy', reason: null, sinceMs: nowMs, untilMs: null, strikesMs: health.strikesMs };
}

/** Text for an XID in reasons for operators. */
export function xidReason(xid: number, policy: HealthPolicy): string {
  const meaning = policy.xids.get(xid)?.meaning;
  return `XID ${xid}${meaning === undefined ? '' : ` (${meaning})`}`;
}

/** Higher is worse: an error never improves the status. */
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

/** The worse of both; another error of the same status changes nothing, except that a probation starts again. */
function worse(before: GpuHealth, after: GpuHealth): GpuHealth {
  const difference = SEVERITY[after.status] - SEVERITY[before.status];
  if (difference > 0) return after;
  return difference === 0 && after.status === 'probation' ? { ...after, sinceMs: before.sinceMs } : before;
}

function onProbation(strikesMs: readonly number[], reason: string, nowMs: number, policy: HealthPolicy): GpuHealth {
  const restMs = Math.min(policy.longestProbationMs, policy.probationMs * 2 ** Math.max(0, strikesMs.length - 1));
  return { status: 'probation', reason, sinceMs: nowMs, untilMs: nowMs + restMs, strikesMs };
}
