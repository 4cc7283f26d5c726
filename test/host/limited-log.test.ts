import { test } from 'tap';
import { LimitedLog } from '../../src/host/limited-log.js';
import { ManualClock } from '../manual-clock.js';

test('the log writes a message a few times in a period, and then counts it', (t) => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const write = (fields: object, message: string): number => lines.push(`${message} ${JSON.stringify(fields)}`);
  const log = new LimitedLog({ warn: write, error: write }, clock, { lines: 2, periodMs: 1_000 });
  for (let request = 0; request < 1_000; request++) log.warn({ request }, 'refused');
  log.error({}, 'failed');
  t.same(lines, ['refused {"request":0}', 'refused {"request":1}', 'failed {}'], 'each message is counted separately');
  clock.advance(1_000);
  t.same(lines.slice(3), [
    'further log lines with this message were suppressed {"message":"refused","omitted":998,"periodMs":1000}',
  ]);
  log.warn({}, 'refused');
  t.equal(lines.at(-1), 'refused {}', 'the message is written again in the next period');
  clock.advance(10_000);
  t.equal(lines.length, 5, 'no summary is written if no message was left out');
  t.end();
});

test('an unlimited variety of messages is counted as one message', (t) => {
  const clock = new ManualClock();
  let lines = 0;
  const log = new LimitedLog({ warn: () => lines++, error: () => lines++ }, clock, { lines: 1, periodMs: 1_000 });
  for (let message = 0; message < 10_000; message++) log.warn({}, String(message));
  t.ok(lines < 100, `${lines} lines`);
  t.end();
});
