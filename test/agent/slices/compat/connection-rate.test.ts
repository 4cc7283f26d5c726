import fc from 'fast-check';
import { test } from 'tap';
import { ConnectionRate } from '../../../../src/agent/slices/compat/connection-rate.js';

const LIMIT = { burst: 10, perSecond: 5, penaltyMs: 1_000, longestPenaltyMs: 8_000 };

test('a burst is admitted, the next connection is refused, and time admits more', (t) => {
  const rate = new ConnectionRate(LIMIT, 0);
  for (let count = 0; count < 10; count += 1) t.same(rate.take(0), { ok: true });
  t.same(rate.take(0), { ok: false, penaltyMs: 1_000 });
  t.same(rate.take(199), { ok: false, penaltyMs: 2_000 });
  t.same(rate.take(400), { ok: true });
  t.end();
});

test('a client that continues is refused for twice as long each time, up to the longest', (t) => {
  const rate = new ConnectionRate({ ...LIMIT, burst: 1, perSecond: 0 }, 0);
  rate.take(0);
  const penalties: number[] = [];
  let now = 0;
  for (let round = 0; round < 6; round += 1) {
    const admission = rate.take(now);
    if (admission.ok) throw new Error('there are no tokens');
    penalties.push(admission.penaltyMs);
    now += admission.penaltyMs;
  }
  t.same(penalties, [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  t.end();
});

test('after a quiet time the first excess has the shortest delay again', (t) => {
  const rate = new ConnectionRate({ ...LIMIT, burst: 1, perSecond: 0 }, 0);
  rate.take(0);
  rate.take(0);
  rate.take(1_000);
  t.same(rate.take(60_000), { ok: false, penaltyMs: 1_000 });
  t.end();
});

test('over any time at most the burst and the rate are admitted', (t) => {
  const property = fc.property(fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 300 }), (gaps) => {
    const rate = new ConnectionRate(LIMIT, 0);
    let now = 0;
    let taken = 0;
    for (const gap of gaps) {
      now += gap;
      if (rate.take(now).ok) taken += 1;
    }
    return taken <= LIMIT.burst + (now * LIMIT.perSecond) / 1_000;
  });
  t.doesNotThrow(() => fc.assert(property));
  t.end();
});

test('a clock that is set back adds no tokens', (t) => {
  const rate = new ConnectionRate({ ...LIMIT, burst: 1 }, 10_000);
  t.same(rate.take(10_000), { ok: true });
  t.match(rate.take(0), { ok: false });
  t.match(rate.take(100), { ok: false });
  t.end();
});
