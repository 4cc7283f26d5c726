import { test } from 'tap';
import { ServerTime } from '../../../src/kube/server-time.js';
import { EngineClock, type ClockState } from '../../../src/quota-controller/clock/engine-clock.js';

const START = Date.parse('2026-03-02T08:00:00Z');
const MINUTE = 60_000;
const DAY = 86_400_000;

/** Manual clocks: the API server's, the replica's, and a monotonic one. */
function clocks(ledgerTime = 0) {
  const at = { server: START as number | null, local: START, elapsed: 0, ledger: 0 };
  const states: ClockState['is'][] = [];
  const clock = new EngineClock({
    serverTime: () => at.server,
    localTime: () => at.local,
    ledgerTime: () => at.ledger,
    elapsed: () => at.elapsed,
    changed: ({ is }) => states.push(is),
  });
  clock.continueFrom(ledgerTime);
  return {
    at,
    clock,
    states,
    /** Advances all clocks. */
    pass: (ms: number): number => {
      if (at.server !== null) at.server += ms;
      at.local += ms;
      at.elapsed += ms;
      return clock.now();
    },
  };
}

test("the engine's time follows the API server, whatever the clock of the replica shows", (t) => {
  const { at, clock, pass } = clocks();
  at.local += 3600 * DAY;
  t.equal(clock.now(), START);
  t.equal(pass(1000), START + 1000);
  at.local -= 7200 * DAY;
  t.equal(pass(1000), START + 2000);
  at.server = (at.server ?? 0) + 30_000;
  t.equal(clock.now(), START + 32_000, 'a small step forward is taken');
  t.end();
});

test('the time never goes back: it runs at half speed until the API server has caught up', (t) => {
  const { at, clock, pass, states } = clocks();
  pass(100_000);
  at.server = START + 90_000;
  t.equal(clock.now(), START + 100_000);
  t.equal(pass(10_000), START + 105_000);
  t.equal(pass(10_000), START + 110_000, 'ten seconds of twenty');
  t.equal(pass(10_000), START + 120_000);
  t.same(states, []);
  at.server = START;
  t.equal(pass(10_000), START + 125_000);
  t.same(states, ['ahead']);
  t.end();
});

test('a leap of the API server alone is refused; one that the replica confirms is taken, up to 31 days', (t) => {
  const { at, clock, pass, states } = clocks();
  at.server = START + 3650 * DAY;
  t.equal(clock.now(), START);
  t.equal(pass(5000), START + 5000, 'time goes on');
  t.same(states, ['leapRefused']);
  at.server = START + 5000;
  t.equal(clock.now(), START + 5000);
  t.same(states, ['leapRefused', 'inSync']);
  at.server += 3 * DAY;
  at.local += 3 * DAY - MINUTE / 2;
  t.equal(clock.now(), START + 3 * DAY + 5000, 'the cluster slept');
  at.server += 40 * DAY;
  at.local = at.server;
  t.equal(clock.now(), START + 3 * DAY + 5000, 'both clocks wrong, or too long a sleep');
  t.equal(clock.differenceMs, 40 * DAY);
  t.end();
});

test('a service continues from the time of the ledger', (t) => {
  t.equal(clocks(START - 5 * DAY).clock.now(), START);
  const far = clocks(START - 100 * DAY);
  t.equal(far.clock.now(), START - 100 * DAY);
  t.same(far.states, ['leapRefused']);
  const ahead = clocks(START + 3650 * DAY);
  t.equal(ahead.pass(2000), START + 3650 * DAY + 1000);
  t.same(ahead.states, ['ahead']);
  const deaf = clocks();
  deaf.at.server = null;
  t.equal(deaf.pass(1000), START + 1000, 'while the API server says nothing, its time is known still');
  t.end();
});

test('a replica with a wrong clock is not ready until another one has confirmed the time in the ledger', (t) => {
  const { at, clock, pass } = clocks(START - DAY);
  t.equal(clock.notReady, null);
  at.local = START - 365 * DAY;
  clock.continueFrom(START - DAY);
  t.match(clock.notReady, /86400 s ahead of the ledger's/);
  at.ledger = START + 3650 * DAY;
  t.equal(pass(1000), START - DAY + 1000, 'a ledger that is ahead of the API server confirms nothing');
  at.ledger = START - 30_000;
  t.equal(pass(1000), START + 2000);
  t.equal(clock.notReady, null);
  at.server = START + DAY;
  t.equal(clock.now(), START + 2000);
  t.equal(clock.notReady, null, 'once it was in step, it goes on as the others do');
  t.end();
});

test("the API server's time is read from Date headers, with an error of at most half a second", (t) => {
  let elapsed = 0;
  const time = new ServerTime(() => elapsed);
  const truth = (): number => START + 123_456 + elapsed;
  t.equal(time.now(), null);
  time.learn('yesterday', 0);
  time.learn(undefined, 0);
  t.equal(time.now(), null);
  for (let answers = 0; answers < 200; answers++) {
    const sent = time.mark();
    elapsed += 3;
    const date = new Date(truth()).toUTCString();
    elapsed += 4;
    time.learn(date, sent);
    const off = Math.abs((time.now() ?? 0) - truth());
    t.ok(off <= 510, `${off} ms`);
    if (answers > 100) t.ok(off <= 60, `${off} ms after a hundred answers`);
    elapsed += 90;
  }
  const sent = time.mark();
  time.learn(new Date(truth() + DAY).toUTCString(), sent);
  t.ok(Math.abs((time.now() ?? 0) - truth() - DAY) <= 510, 'a server whose clock was set is believed at once');
  t.end();
});
