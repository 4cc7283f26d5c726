import { test } from 'tap';
import { ReportPace } from '../../../src/quota-controller/controller/report-pace.js';

test('a single change is reported soon', async (t) => {
  const pace = new ReportPace(300, 3000);
  t.equal(pace.delayMs('a', 1000), 300);
  pace.reported('a', 1300);
  t.equal(pace.delayMs('a', 60_000), 300);
});

test('a group that keeps changing is reported less and less often, down to a limit', async (t) => {
  const pace = new ReportPace(300, 3000);
  const times: number[] = [];
  for (let now = 0; now < 60_000;) {
    now += pace.delayMs('a', now);
    pace.reported('a', now);
    times.push(now);
  }
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  t.same(gaps.slice(0, 6), [300, 600, 1200, 2400, 3000, 3000]);
  t.equal(Math.max(...gaps), 3000);
});

test('changes between two reports do not delay the next one, and other groups keep their own pace', async (t) => {
  const pace = new ReportPace(300, 3000);
  for (const at of [0, 300, 900, 2100]) pace.reported('a', at);
  t.equal(pace.delayMs('a', 2200), 2300);
  t.equal(pace.delayMs('a', 4000), 500);
  t.equal(pace.delayMs('b', 2200), 300);
});

test('a quiet group, a deleted group and a clock that was set back are reported soon again', async (t) => {
  const pace = new ReportPace(300, 3000);
  for (const at of [0, 300, 900, 2100]) pace.reported('a', at);
  t.equal(pace.delayMs('a', 20_000), 300);
  pace.reported('a', 20_000);
  t.equal(pace.delayMs('a', 20_000), 300);
  t.equal(pace.delayMs('a', 0), 3000, 'never longer than the limit');
  pace.forget('a');
  t.equal(pace.delayMs('a', 0), 300);
});
