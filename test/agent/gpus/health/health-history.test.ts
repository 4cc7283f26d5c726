import { test } from 'tap';
import {
  decodeHistory,
  encodeHistory,
  freshRecord,
  newLife,
  restoredHealth,
  withChange,
  type GpuLife,
  type HealthRecord,
} from '../../../../src/agent/gpus/health-history.js';
import { afterEvent, freshHealth, type GpuHealth } from '../../../../src/agent/gpus/health.js';
import { MINUTE, POLICY } from './health-policy.js';

const LIFE: GpuLife = { bootId: 'first', driverVersion: '550.1', energyMillijoules: 1_000 };

function afterXid(xid: number, atMs = 10 * MINUTE): HealthRecord {
  const health: GpuHealth = afterEvent(freshHealth(0), { kind: 'xid', xid }, atMs, POLICY);
  return withChange(freshRecord('GPU-1', LIFE, 0), health, LIFE, atMs);
}

test('an error that only a reset cures is kept with its age as long as the GPU is not reset', (t) => {
  const later: GpuLife = { ...LIFE, energyMillijoules: 5_000 };
  for (const [xid, status] of [
    [48, 'reset'],
    [79, 'failed'],
  ] as const)
    t.match(restoredHealth(afterXid(xid), later, 9_000 * MINUTE, POLICY), { status, sinceMs: 10 * MINUTE });
  t.end();
});

test('a boot, another driver and a reset end the error: the GPU is on probation', (t) => {
  for (const [life, reason] of [
    [{ ...LIFE, bootId: 'second' }, 'the machine was booted'],
    [{ ...LIFE, driverVersion: '560.2' }, 'the driver was changed to 560.2'],
    [{ ...LIFE, energyMillijoules: 999 }, 'the GPU was reset'],
  ] as const) {
    t.equal(newLife(LIFE, life), reason);
    for (const xid of [48, 79])
      t.match(restoredHealth(afterXid(xid), life, 20 * MINUTE, POLICY), {
        status: 'probation',
        reason,
        untilMs: 21 * MINUTE,
      });
  }
  t.end();
});

test('unknown values are no evidence of a boot, another driver or a reset', (t) => {
  t.equal(newLife(LIFE, { bootId: null, driverVersion: null, energyMillijoules: null }), null);
  t.equal(newLife({ bootId: null, driverVersion: null, energyMillijoules: null }, LIFE), null);
  t.end();
});

test('a probation continues after a restart, and one that ended meanwhile is over', (t) => {
  const resting = afterXid(94);
  t.match(restoredHealth(resting, LIFE, 10.5 * MINUTE, POLICY), { status: 'probation', untilMs: 11 * MINUTE });
  t.match(restoredHealth(resting, LIFE, 12 * MINUTE, POLICY), {
    status: 'healthy',
    strikesMs: [10 * MINUTE],
  });
  t.end();
});

test('a clock that was set back does not prolong a probation', (t) => {
  t.match(restoredHealth(afterXid(94), LIFE, 2 * MINUTE, POLICY), { sinceMs: 2 * MINUTE, untilMs: 3 * MINUTE });
  t.end();
});

test('a GPU that was lost and answers again is on probation', (t) => {
  const lost = afterEvent(freshHealth(0), { kind: 'lost', reason: 'fell off' }, MINUTE, POLICY);
  const record = withChange(freshRecord('GPU-1', LIFE, 0), lost, LIFE, MINUTE);
  t.match(restoredHealth(record, LIFE, 5 * MINUTE, POLICY), { status: 'probation' });
  t.end();
});

test('a written history is read again; anything else is refused with a reason', (t) => {
  const record = afterXid(48);
  t.same(decodeHistory(encodeHistory([record])), { ok: true, records: [record] });
  t.match(decodeHistory('{"version":1,'), { ok: false, reason: /not JSON/ });
  t.match(decodeHistory('{"version":2,"gpus":[]}'), { ok: false, reason: /version/ });
  t.match(decodeHistory('{"version":1,"gpus":[{"uuid":"x"}]}'), { ok: false, reason: /gpus\.0\.health/ });
  t.end();
});

test('the latest changes are kept, up to a limit', (t) => {
  let record = freshRecord('GPU-1', LIFE, 0);
  for (let at = 1; at <= 100; at += 1) record = withChange(record, freshHealth(at), LIFE, at);
  t.equal(record.changes.length, 32);
  t.equal(record.changes.at(-1)?.atMs, 100);
  t.end();
});
