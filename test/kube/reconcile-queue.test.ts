import { test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { failure, KubeError } from '../../src/kube/failure.js';
import { ReconcileQueue } from '../../src/kube/reconcile-queue.js';
import { ManualClock } from '../manual-clock.js';

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function reconciling(reconcile: (key: string) => Promise<void>) {
  const clock = new ManualClock();
  const failed: string[] = [];
  const queue = new ReconcileQueue({
    reconcile,
    failed: (key, error) => failed.push(`${key}: ${(error as Error).message}`),
    clock,
    log: silentLog(),
    random: () => 1,
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250);
      await settle();
    }
  };
  return { clock, queue, failed, pass };
}

test('a key that fails is reconciled again after growing pauses, without delay for other keys', async (t) => {
  const tries: string[] = [];
  const { clock, queue, failed, pass } = reconciling(async (key) => {
    tries.push(`${key} ${clock.now() - 1_000_000}`);
    if (key === 'bad' && tries.length < 5) throw new Error('in the way');
  });
  queue.put('bad', 0);
  queue.put('good', 0);
  await settle();
  await pass(10_000);
  t.same(tries, ['bad 0', 'good 0', 'bad 500', 'bad 1500', 'bad 3500']);
  t.equal(failed.length, 3);
  t.equal(queue.size, 0);
});

test('during an outage of the API server, only one key tests whether the server is back', async (t) => {
  let [isAway, attempts] = [true, 0];
  const { queue, pass } = reconciling(async () => {
    attempts++;
    if (isAway) throw new KubeError('no answer', failure('unreachable', 'down'));
  });
  for (let key = 0; key < 100; key++) queue.put(String(key), 0);
  await settle();
  const first = attempts;
  await pass(600_000);
  t.ok(attempts - first <= 45, `the queue makes ${attempts - first} attempts in ten minutes`);
  isAway = false;
  await pass(60_000);
  t.equal(queue.size, 0);
});

test('a key that is requested while it runs runs once more, and never concurrently with itself', async (t) => {
  let [running, most, runs] = [0, 0, 0];
  const ends: (() => void)[] = [];
  const { queue } = reconciling(async () => {
    runs++;
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
  });
  for (let times = 0; times < 3; times++) queue.put('a', 0);
  await settle();
  for (let times = 0; times < 3; times++) queue.put('a', 0);
  t.equal(runs, 1);
  ends.shift()?.();
  await settle();
  await settle();
  ends.shift()?.();
  await settle();
  t.equal(runs, 2);
  t.equal(most, 1);
});
