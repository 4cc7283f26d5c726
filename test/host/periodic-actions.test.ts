import { test } from 'tap';
import { PeriodicActions } from '../../src/host/periodic-actions.js';
import { ManualClock } from '../manual-clock.js';

interface Periodically {
  readonly clock: ManualClock;
  readonly actions: PeriodicActions;
  /** Number of times that a timer was set. */
  readonly timers: () => number;
}

function periodically(nowMs: number): Periodically {
  const clock = new ManualClock(nowMs);
  let timers = 0;
  const after = (delayMs: number, action: () => void): (() => void) => {
    timers += 1;
    return clock.after(delayMs, action);
  };
  return { clock, actions: new PeriodicActions(after, () => clock.now()), timers: () => timers };
}

test('one timer serves actions of several periods', (t) => {
  const { clock, actions, timers } = periodically(1_030);
  const calls: [string, number][] = [];
  const note = (name: string) => (): void => void calls.push([name, clock.now()]);
  const cancels = [actions.add(100, note('tenth'))];
  clock.advance(40);
  cancels.push(actions.add(500, note('half')));
  clock.advance(1_000);
  const halves = calls.filter(([name]) => name === 'half').map(([, atMs]) => atMs);
  t.equal(halves.length, 1);
  t.ok(
    calls.filter(([name]) => name === 'tenth').some(([, atMs]) => atMs === halves[0]),
    'both in one wakeup',
  );
  t.equal(timers(), 1 + calls.length - halves.length);
  for (const cancel of cancels) cancel();
  const before = calls.length;
  clock.advance(2_000);
  t.equal(calls.length, before, 'cancelled actions are not called');
  t.end();
});

test('the first call is at least a period later, and the others follow at that distance', (t) => {
  for (const periodMs of [20, 100, 500, 1_000, 1_500, 5_000]) {
    const { clock, actions } = periodically(1_234);
    const calls: number[] = [];
    actions.add(periodMs, () => calls.push(clock.now()));
    clock.advance(10 * periodMs);
    const [first = 0] = calls;
    t.ok(first >= 1_234 + periodMs && first <= 1_234 + 2 * periodMs, `${periodMs}: ${first}`);
    t.ok(
      calls.every((atMs, at) => Math.abs(atMs - first - at * periodMs) <= at),
      `${periodMs}: ${calls.join()}`,
    );
  }
  t.end();
});

test('a late action is called once', (t) => {
  let nowMs = 1_000;
  let run = (): void => undefined;
  const actions = new PeriodicActions(
    (_delayMs, action) => {
      run = action;
      return () => undefined;
    },
    () => nowMs,
  );
  let calls = 0;
  actions.add(100, () => (calls += 1));
  nowMs = 5_050;
  run();
  t.equal(calls, 1);
  nowMs = 5_100;
  run();
  t.equal(calls, 1, 'it does not catch up');
  nowMs = 5_201;
  run();
  t.equal(calls, 2);
  t.end();
});

test('an action that throws does not end the others', (t) => {
  const { clock, actions } = periodically(1_000);
  let calls = 0;
  actions.add(100, () => {
    throw new Error('expected');
  });
  actions.add(100, () => (calls += 1));
  t.throws(() => clock.advance(150), /expected/);
  clock.advance(1);
  t.equal(calls, 1);
  t.end();
});
