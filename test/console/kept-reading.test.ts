import { test } from 'tap';
import { KeptReading } from '../../src/console/kept-reading.js';
import { ManualClock } from '../manual-clock.js';

test('one reading serves all readers for its time, and no failure is kept', async (t) => {
  const clock = new ManualClock();
  let readings = 0;
  let failure: Error | null = null;
  const kept = new KeptReading(
    async () => {
      readings += 1;
      if (failure !== null) throw failure;
      return readings;
    },
    clock,
    10_000,
  );
  t.same(await Promise.all([kept.read(), kept.read()]), [1, 1]);
  clock.advance(9_999);
  t.equal(await kept.read(), 1);
  clock.advance(1);
  failure = new Error('the API server is away');
  await t.rejects(kept.read(), failure);
  failure = null;
  t.equal(await kept.read(), 3);
});
