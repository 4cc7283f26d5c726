import { setImmediate as settled } from 'node:timers/promises';
import { test } from 'tap';
import { Rounds } from '../../src/host/rounds.js';
import { ManualClock } from '../manual-clock.js';

/** Rounds that are active until they are ended. */
function slowRounds(clock: ManualClock, everyMs: number | (() => number)) {
  const ends: (() => void)[] = [];
  const rounds = new Rounds(clock, everyMs, () => new Promise((resolve) => void ends.push(resolve)));
  return { rounds, ends };
}

test('a round with a fixed period leaves out runs that are due while one is active', async (t) => {
  const clock = new ManualClock();
  const { rounds, ends } = slowRounds(clock, 100);
  rounds.start();
  clock.advance(350);
  t.equal(ends.length, 1, 'one run at a time');
  ends[0]?.();
  await settled();
  clock.advance(100);
  t.equal(ends.length, 2, 'at the next time after its end');
  let stopped = false;
  const stopping = rounds.stop().then(() => (stopped = true));
  clock.advance(500);
  await settled();
  t.equal(stopped, false, 'stop waits for the active run');
  ends[1]?.();
  await stopping;
  t.equal(ends.length, 2, 'none begins after stop');
});

test('a round with computed delays begins a delay after the end of the one before', async (t) => {
  const clock = new ManualClock();
  const { rounds, ends } = slowRounds(clock, () => 100 * (ends.length + 1));
  rounds.start();
  clock.advance(100);
  t.equal(ends.length, 1);
  clock.advance(1_000);
  t.equal(ends.length, 1);
  ends[0]?.();
  await settled();
  clock.advance(199);
  t.equal(ends.length, 1);
  clock.advance(1);
  t.equal(ends.length, 2);
  ends[1]?.();
  await rounds.stop();
});

test('a run that is asked for during another one begins right after it', async (t) => {
  const clock = new ManualClock();
  const { rounds, ends } = slowRounds(clock, 1_000);
  rounds.start();
  rounds.now();
  rounds.now();
  t.equal(ends.length, 1);
  ends[0]?.();
  await settled();
  t.equal(ends.length, 2);
  ends[1]?.();
  await settled();
  t.equal(ends.length, 2, 'once');
  await rounds.stop();
  rounds.now();
  t.equal(ends.length, 2);
});
