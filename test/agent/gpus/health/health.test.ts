import fc from 'fast-check';
import { test } from 'tap';
import {
  afterEvent,
  afterTime,
  freshHealth,
  xidReason,
  type GpuHealth,
  type HealthEvent,
} from '../../../../src/agent/gpus/health.js';
import { MINUTE, POLICY } from './health-policy.js';

const xid = (number: number): HealthEvent => ({ kind: 'xid', xid: number });
const LOST: HealthEvent = { kind: 'lost', reason: 'fell off' };
const FOUND: HealthEvent = { kind: 'found' };
const RESTARTED: HealthEvent = { kind: 'restarted', reason: 'the driver was restarted' };
const ECC: HealthEvent = { kind: 'ecc' };

/** Health after events at given minutes. */
function history(...events: readonly (readonly [minute: number, event: HealthEvent])[]): GpuHealth {
  let health = freshHealth(0);
  for (const [minute, event] of events)
    health = afterEvent(afterTime(health, minute * MINUTE), event, minute * MINUTE, POLICY);
  return health;
}

test('an application error does not change the health of the GPU', (t) => {
  const fresh = freshHealth(0);
  t.equal(afterEvent(fresh, xid(13), MINUTE, POLICY), fresh);
  t.end();
});

test('a transient error puts the GPU on probation, which ends by time', (t) => {
  const resting = history([0, xid(94)]);
  t.match(resting, { status: 'probation', reason: 'XID 94 (contained memory error)', sinceMs: 0, untilMs: MINUTE });
  t.equal(afterTime(resting, MINUTE - 1), resting);
  t.match(afterTime(resting, MINUTE), { status: 'healthy', reason: null, sinceMs: MINUTE, untilMs: null });
  t.end();
});

test('an error that the table does not list has the class for unlisted errors', (t) => {
  t.match(history([0, xid(999)]), { status: 'probation', reason: 'XID 999' });
  t.end();
});

test('every further transient error doubles the probation, up to the longest', (t) => {
  t.equal(history([0, xid(94)], [10, xid(94)]).untilMs, 12 * MINUTE);
  t.equal(
    history([0, xid(94)], [10, xid(94)], [20, xid(94)]).untilMs,
    23 * MINUTE,
    'a probation of four minutes would exceed the longest',
  );
  t.end();
});

test('an error during probation extends it and keeps its start time', (t) => {
  const health = history([0, xid(94)], [0.5, xid(94)]);
  t.match(health, { status: 'probation', sinceMs: 0, untilMs: 2.5 * MINUTE });
  t.end();
});

test('too many transient errors within the window need a reset', (t) => {
  const health = history([0, xid(94)], [10, xid(94)], [20, xid(94)], [30, xid(94)]);
  t.match(health, { status: 'reset', reason: 'XID 94 (contained memory error), 4 such errors within 60 min' });
  t.match(
    history([0, xid(94)], [30, xid(94)], [61, xid(94)], [91, xid(94)]),
    { status: 'probation' },
    'old errors do not count',
  );
  t.end();
});

test('memory errors that ECC could not correct need a reset', (t) => {
  t.match(history([0, ECC]), { status: 'reset', reason: 'memory errors that ECC could not correct: needs a reset' });
  t.match(history([0, xid(48)]), { status: 'reset', reason: 'XID 48 (two bits): needs a reset', untilMs: null });
  t.end();
});

test('a GPU that needs a reset does not recover by waiting', (t) => {
  const health = history([0, xid(48)]);
  t.equal(afterTime(health, 1e12), health);
  t.end();
});

test('a lost GPU that answers again is on probation, without its earlier errors', (t) => {
  t.match(history([0, xid(79)]), { status: 'failed', reason: 'XID 79 (off the bus)' });
  t.match(history([0, xid(79)], [0, LOST]), { status: 'lost', reason: 'fell off' });
  t.match(history([0, xid(94)], [0, xid(79)], [0, LOST], [5, FOUND]), {
    status: 'probation',
    reason: 'answers again after it was lost',
    untilMs: 6 * MINUTE,
    strikesMs: [],
  });
  const failed = history([0, xid(79)]);
  t.equal(afterEvent(failed, FOUND, MINUTE, POLICY), failed, 'only a lost GPU can be found');
  t.end();
});

test('a restart of the driver puts broken GPUs on probation and leaves healthy ones alone', (t) => {
  for (const event of [xid(48), xid(79), LOST]) {
    t.match(history([0, event], [1, RESTARTED]), { status: 'probation', reason: 'the driver was restarted' });
  }
  const fresh = freshHealth(0);
  t.equal(afterEvent(fresh, RESTARTED, MINUTE, POLICY), fresh);
  const resting = history([0, xid(94)]);
  t.equal(afterEvent(resting, RESTARTED, 1, POLICY), resting);
  t.end();
});

test('the message of an XID names its meaning where that is known', (t) => {
  t.equal(xidReason(79, POLICY), 'XID 79 (off the bus)');
  t.equal(xidReason(7, POLICY), 'XID 7');
  t.end();
});

const SEVERITY = ['healthy', 'probation', 'reset', 'failed', 'lost'];
const anyError = fc.constantFrom<HealthEvent>(xid(13), xid(94), xid(48), xid(79), xid(999), ECC, LOST);
const anyEvent = fc.oneof(anyError, fc.constantFrom(FOUND, RESTARTED));
const anyHistory = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), anyEvent), { maxLength: 25 });

/** Every health in the course of a history. */
function walk(
  steps: readonly (readonly [number, HealthEvent])[],
): { before: GpuHealth; event: HealthEvent; after: GpuHealth; nowMs: number }[] {
  let health = freshHealth(0);
  let nowMs = 0;
  return steps.map(([minutes, event]) => {
    nowMs += minutes * MINUTE;
    const before = afterTime(health, nowMs);
    health = afterEvent(before, event, nowMs, POLICY);
    return { before, event, after: health, nowMs };
  });
}

test('an error never improves the health of a GPU, whatever the history', (t) => {
  fc.assert(
    fc.property(anyHistory, (steps) =>
      walk(steps).every(({ before, event, after }) => {
        if (event.kind === 'found' || event.kind === 'restarted') return true;
        return SEVERITY.indexOf(after.status) >= SEVERITY.indexOf(before.status);
      }),
    ),
    { numRuns: 300 },
  );
  t.pass('300 histories');
  t.end();
});

test('an unhealthy GPU has a reason, and a probation ends within the longest time, whatever the history', (t) => {
  fc.assert(
    fc.property(anyHistory, (steps) =>
      walk(steps).every(({ after, nowMs }) => {
        const { status, reason, untilMs, strikesMs } = after;
        const rest = untilMs === null || (untilMs > nowMs && untilMs - nowMs <= POLICY.longestProbationMs);
        return (
          (status === 'healthy') === (reason === null) &&
          (status === 'probation') === (untilMs !== null) &&
          rest &&
          strikesMs.length <= POLICY.strikes
        );
      }),
    ),
    { numRuns: 300 },
  );
  t.pass('300 histories');
  t.end();
});

test('a GPU is healthy again after a restart of the driver and a quiet time, whatever the history', (t) => {
  fc.assert(
    fc.property(anyHistory, (steps) => {
      const last = walk(steps).at(-1) ?? { after: freshHealth(0), nowMs: 0 };
      const restarted = afterEvent(last.after, RESTARTED, last.nowMs, POLICY);
      return afterTime(restarted, last.nowMs + POLICY.longestProbationMs).status === 'healthy';
    }),
    { numRuns: 300 },
  );
  t.pass('300 histories');
  t.end();
});
