import fc from 'fast-check';
import { test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { failure, type KubeFailureCode } from '../../src/kube/failure.js';
import { WorkQueue, type WorkQueueOptions, type WorkResult } from '../../src/kube/work-queue.js';
import { ManualClock } from '../manual-clock.js';

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function queue(options: Partial<WorkQueueOptions> = {}): { readonly clock: ManualClock; readonly writes: WorkQueue } {
  const clock = new ManualClock();
  return { clock, writes: new WorkQueue({ clock, log: silentLog(), random: () => 1, ...options }) };
}

/** Returns these results one after another, then `done`; records when each try happened. */
function scripted(
  clock: ManualClock,
  results: readonly (KubeFailureCode | WorkResult)[],
): { readonly tries: number[]; attempt(): Promise<WorkResult> } {
  const left = [...results];
  const begin = clock.now();
  const tries: number[] = [];
  return {
    tries,
    attempt: async () => {
      tries.push(clock.now() - begin);
      const next = left.shift() ?? 'done';
      return typeof next === 'string' && next !== 'done' && next !== 'gone' ? failure(next, next) : next;
    },
  };
}

async function passTime(clock: ManualClock, ms: number, stepMs = 250): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await settle();
  }
}

test('the queue tries a write at once and counts it', async (t) => {
  const { clock, writes } = queue();
  const write = scripted(clock, []);
  writes.put('a', write);
  await settle();
  t.same(write.tries, [0]);
  t.match(writes.counts, { done: 1, waiting: 0 });
});

test('the queue retries temporary refusals with growing pauses, and gives up after ten answers', async (t) => {
  const { clock, writes } = queue();
  const write = scripted(clock, Array<KubeFailureCode>(20).fill('server-error'));
  let ended = 0;
  writes.put('a', { ...write, ended: () => (ended += 1) });
  await settle();
  await passTime(clock, 400_000);
  t.same(write.tries, [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500, 63_500, 123_500, 183_500]);
  t.equal(writes.counts.dropped.get('server-error'), 1);
  t.equal(ended, 1);
});

test('pauses are jittered down to half', async (t) => {
  const { clock, writes } = queue({ random: () => 0 });
  const write = scripted(clock, ['conflict', 'conflict', 'conflict']);
  writes.put('a', write);
  await settle();
  await passTime(clock, 10_000);
  t.same(write.tries, [0, 250, 750, 1_750]);
});

test('the queue drops permanent refusals and writes to missing objects at once', async (t) => {
  const { clock, writes } = queue();
  writes.put('a', scripted(clock, ['invalid']));
  writes.put('b', scripted(clock, ['gone']));
  await settle();
  t.same(
    [...writes.counts.dropped],
    [
      ['invalid', 1],
      ['gone', 1],
    ],
  );
  t.equal(writes.counts.waiting, 0);
});

test('an outage of an hour loses no write, and only one write tests whether it is over', async (t) => {
  const { clock, writes } = queue();
  let down = true;
  let attempts = 0;
  let together = 0;
  let most = 0;
  const attempt = async (): Promise<WorkResult> => {
    attempts += 1;
    together += 1;
    most = Math.max(most, together);
    await settle();
    together -= 1;
    return down ? failure('unreachable', 'down') : 'done';
  };
  for (let i = 0; i < 50; i += 1) writes.put(String(i), { attempt });
  await settle();
  await settle();
  const first = attempts;
  await passTime(clock, 3_600_000, 5_000);
  t.ok(first <= 4);
  t.ok(attempts - first <= 75, `the queue makes ${attempts - first} attempts in an hour`);
  t.equal(writes.counts.waiting, 50);
  down = false;
  await passTime(clock, 600_000, 5_000);
  t.match(writes.counts, { done: 50, waiting: 0 });
  t.ok(most <= 4);
});

test('the queue drops a write after two hours', async (t) => {
  const { clock, writes } = queue();
  writes.put('a', scripted(clock, Array<KubeFailureCode>(1_000).fill('timeout')));
  await settle();
  await passTime(clock, 7_300_000, 10_000);
  t.equal(writes.counts.dropped.get('late'), 1);
});

test('the queue respects the retry delay of the server', async (t) => {
  const { clock, writes } = queue();
  const write = scripted(clock, [failure('too-many-requests', 'slow down', 10_000)]);
  writes.put('a', write);
  await settle();
  await passTime(clock, 20_000);
  t.same(write.tries, [0, 10_000]);
});

test('a write that always fails does not delay the others', async (t) => {
  const { clock, writes } = queue({ concurrency: 1 });
  writes.put('bad', scripted(clock, Array<KubeFailureCode>(5).fill('server-error')));
  const good = scripted(clock, []);
  writes.put('good', good);
  await settle();
  await settle();
  t.same(good.tries, [0]);
});

test('of writes with one key the latest waits, and two never run concurrently', async (t) => {
  const { writes } = queue();
  const ran: string[] = [];
  const ended: string[] = [];
  let finish = (): void => undefined;
  const write = (name: string) => ({
    attempt: async (): Promise<WorkResult> => {
      ran.push(name);
      if (name === 'first') await new Promise<void>((resolve) => (finish = resolve));
      return 'done';
    },
    ended: () => void ended.push(name),
  });
  for (const name of ['first', 'second', 'third']) writes.put('a', write(name));
  await settle();
  t.same(ran, ['first']);
  t.same(ended, ['second']);
  finish();
  await settle();
  await settle();
  t.same(ran, ['first', 'third']);
  t.same(ended, ['second', 'first', 'third']);
});

test('a failed write does not replace a newer one of its key', async (t) => {
  const { clock, writes } = queue();
  const ran: string[] = [];
  writes.put('a', {
    attempt: async () => {
      ran.push('old');
      writes.put('a', { attempt: async () => (ran.push('new'), 'done') });
      return failure('conflict', 'changed');
    },
  });
  await settle();
  await passTime(clock, 5_000);
  t.same(ran, ['old', 'new']);
});

test('the queue has a maximum length, and a new write replaces the oldest', async (t) => {
  const { clock, writes } = queue({ capacity: 3, concurrency: 1 });
  writes.put('running', { attempt: () => new Promise(() => undefined) });
  const ended: string[] = [];
  for (const key of ['a', 'b', 'c', 'd', 'e'])
    writes.put(key, { ...scripted(clock, []), ended: () => void ended.push(key) });
  t.same(ended, ['a', 'b']);
  t.equal(writes.counts.waiting, 4);
  t.equal(writes.counts.dropped.get('overflow'), 2);
});

test('a stop waits for running writes and starts no others', async (t) => {
  const { clock, writes } = queue({ concurrency: 1 });
  let finish = (): void => undefined;
  writes.put('a', { attempt: () => new Promise((resolve) => (finish = () => resolve('done'))) });
  const other = scripted(clock, []);
  writes.put('b', other);
  await settle();
  const stopped = writes.stop();
  finish();
  await stopped;
  writes.put('c', other);
  await passTime(clock, 10_000);
  t.same(other.tries, []);
});

test('with any answers, every write ends once, within its limits', async (t) => {
  const codes = fc.constantFrom<KubeFailureCode | 'done' | 'gone'>(
    'done',
    'gone',
    'unreachable',
    'timeout',
    'conflict',
    'server-error',
    'invalid',
    'too-many-requests',
    'forbidden',
  );
  await t.resolves(
    fc.assert(
      fc.asyncProperty(fc.array(fc.array(codes, { maxLength: 6 }), { maxLength: 12 }), async (scripts) => {
        const { clock, writes } = queue({ concurrency: 2 });
        const ended = new Map<number, number>();
        for (const [index, script] of scripts.entries())
          writes.put(String(index), {
            ...scripted(clock, script),
            ended: () => void ended.set(index, (ended.get(index) ?? 0) + 1),
          });
        await settle();
        await passTime(clock, 1_800_000, 20_000);
        const { counts } = writes;
        const dropped = [...counts.dropped.values()].reduce((sum, count) => sum + count, 0);
        return (
          counts.waiting === 0 &&
          counts.done + dropped === scripts.length &&
          scripts.every((_, index) => ended.get(index) === 1)
        );
      }),
      { numRuns: 30 },
    ),
  );
});

test('delayed work runs when it is due, or earlier if it is requested again', async (t) => {
  const { clock, writes } = queue();
  const [late, soon, now] = [scripted(clock, []), scripted(clock, []), scripted(clock, [])];
  writes.put('a', late, 5_000);
  writes.put('a', soon, 1_000);
  writes.put('b', late, 1_000);
  writes.put('b', soon, 5_000);
  writes.put('c', late, 5_000);
  writes.put('c', now);
  await settle();
  t.same(now.tries, [0]);
  await passTime(clock, 10_000);
  t.same(late.tries, [], 'newer work replaces older work');
  t.same(soon.tries, [1_000, 1_000]);
});

test('forgotten work is neither started nor retried', async (t) => {
  const { clock, writes } = queue();
  let finish = (): void => undefined;
  const running = scripted(clock, ['conflict', 'conflict']);
  writes.put('a', {
    attempt: async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return running.attempt();
    },
  });
  const waiting = scripted(clock, []);
  writes.put('b', waiting, 1_000);
  await settle();
  writes.forget('a');
  writes.forget('b');
  finish();
  await passTime(clock, 10_000);
  t.equal(running.tries.length, 1);
  t.same(waiting.tries, []);
  t.equal(writes.counts.waiting, 0);
});

test('a queue without a retry limit continues at its longest pause, whatever the answers', async (t) => {
  const { clock, writes } = queue({ givesUp: false, longestBackoffMs: 4_000 });
  const work = scripted(clock, Array<KubeFailureCode>(14).fill('invalid'));
  writes.put('a', work);
  await settle();
  await passTime(clock, 60_000);
  t.same(work.tries.slice(0, 6), [0, 500, 1_500, 3_500, 7_500, 11_500]);
  t.match(writes.counts, { done: 1, waiting: 0 });
  t.equal(writes.counts.dropped.size, 0);
});
