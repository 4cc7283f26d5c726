import { test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { BINDING_LASTS_MS } from '../../src/kube/pod-writes.js';
import { Election } from '../../src/scheduler/election.js';
import { ManualClock } from '../manual-clock.js';
import { LeaseApi } from './lease-api.js';

interface Replica {
  readonly election: Election;
  isCut: boolean;
  isWriting: boolean;
  begun: number;
  /** Ends of the reads that `reads` holds back; null: a read ends at once. */
  reads: (() => void)[] | null;
  ended: number;
}

function replicas(count: number): { readonly clock: ManualClock; readonly all: readonly Replica[] } {
  const clock = new ManualClock();
  const api = new LeaseApi();
  const all = Array.from({ length: count }, (_, at) => {
    const replica = { isCut: false, isWriting: false, begun: 0, ended: 0, reads: null } as Replica;
    const election = new Election({
      api: api.forReplica(replica),
      lease: { namespace: 'kube-system', name: 'gpu-extender' },
      identity: `replica-${at}`,
      clock,
      log: silentLog(),
      begin: () => {
        replica.begun++;
        return new Promise((resolve) => (replica.reads === null ? resolve() : void replica.reads.push(resolve)));
      },
      end: () => void replica.ended++,
      isWriting: () => replica.isWriting,
    });
    election.start();
    return Object.assign(replica, { election });
  });
  return { clock, all };
}

const answering = (all: readonly Replica[]): number[] =>
  [...all.keys()].filter((at) => all[at]?.election.notReady() === null);

/** Lets time pass and counts the longest time without a replica that answers. */
async function pass(clock: ManualClock, all: readonly Replica[], ms: number, each: () => void = () => undefined) {
  let [most, silentMs, longestMs] = [0, 0, 0];
  for (let passed = 0; passed < ms; passed += 100) {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    each();
    const now = answering(all).length;
    most = Math.max(most, now);
    silentMs = now === 0 ? silentMs + 100 : 0;
    longestMs = Math.max(longestMs, silentMs);
    clock.advance(100);
  }
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  return { most, longestMs };
}

test('one replica answers, and another one takes over in less than five seconds when it is cut off', async (t) => {
  const { clock, all } = replicas(3);
  await pass(clock, all, 1_000);
  const [first] = answering(all);
  t.equal(answering(all).length, 1);
  const holder = all[first ?? 0] as Replica;
  holder.isCut = true;
  let stoppedAt: number | null = null;
  let tookOverAt: number | null = null;
  const { most, longestMs } = await pass(clock, all, 10_000, () => {
    if (holder.election.notReady() !== null) stoppedAt ??= clock.now();
    if (answering(all).some((at) => at !== first)) tookOverAt ??= clock.now();
  });
  t.equal(most, 1, 'two replicas never answer at the same time');
  t.ok(longestMs < 5_000, `nobody answered for ${longestMs} ms`);
  t.ok(
    (tookOverAt ?? 0) - (stoppedAt ?? 0) >= BINDING_LASTS_MS,
    'bindings of the replica before are over when the next one answers',
  );
  t.equal(holder.ended, 1, 'the replica that was cut off drops its decisions');
});

test('a replica that wins the Lease again answers when its bindings from before have ended', async (t) => {
  const { clock, all } = replicas(1);
  const [only] = all as [Replica];
  await pass(clock, all, 1_000);
  only.isCut = true;
  let [lostAt, answersAt] = [Infinity, Infinity];
  await pass(clock, all, 2_400, () => {
    if (only.ended === 1) lostAt = Math.min(lostAt, clock.now());
  });
  only.isCut = false;
  await pass(clock, all, 3_000, () => {
    if (only.election.notReady() === null) answersAt = Math.min(answersAt, clock.now());
  });
  t.ok(answersAt - lostAt >= BINDING_LASTS_MS, `it answers ${answersAt - lostAt} ms after the Lease was lost`);
  t.equal(only.begun, 2);
});

test('the Lease follows the replica that the scheduler asks', async (t) => {
  const { clock, all } = replicas(2);
  await pass(clock, all, 1_000);
  const holder = answering(all)[0] === 0 ? 0 : 1;
  const other = all[1 - holder] as Replica;
  const asked = all[holder] as Replica;
  await pass(clock, all, 4_000, () => asked.election.asked());
  t.same(answering(all), [holder]);
  await pass(clock, all, 4_000, () => {
    asked.election.asked();
    other.election.asked();
  });
  t.same(answering(all), [holder], 'a replica that is still asked keeps the Lease');
  const { most, longestMs } = await pass(clock, all, 5_000, () => other.election.asked());
  t.same(answering(all), [1 - holder]);
  t.equal(most, 1);
  t.ok(longestMs < 5_000, `nobody answered for ${longestMs} ms`);
});

test('a replica hands over only when its bindings are answered', async (t) => {
  const { clock, all } = replicas(2);
  await pass(clock, all, 1_000);
  const holder = answering(all)[0] === 0 ? 0 : 1;
  (all[holder] as Replica).isWriting = true;
  await pass(clock, all, 5_000, () => all[1 - holder]?.election.asked());
  t.same(answering(all), [holder]);
  (all[holder] as Replica).isWriting = false;
  await pass(clock, all, 3_000, () => all[1 - holder]?.election.asked());
  t.same(answering(all), [1 - holder]);
});

test('a replica that stops while it writes a binding leaves the Lease to expire', async (t) => {
  for (const isWriting of [false, true]) {
    const { clock, all } = replicas(2);
    await pass(clock, all, 1_000);
    const holder = answering(all)[0] === 0 ? 0 : 1;
    (all[holder] as Replica).isWriting = isWriting;
    await all[holder]?.election.stop();
    const stoppedAt = clock.now();
    let answersAt = Infinity;
    await pass(clock, all, 6_000, () => {
      if (answering(all).includes(1 - holder)) answersAt = Math.min(answersAt, clock.now());
    });
    t.equal(answersAt - stoppedAt >= BINDING_LASTS_MS, isWriting, `${answersAt - stoppedAt} ms`);
    t.ok(answersAt - stoppedAt < 5_000);
  }
});

test('a read that began before the Lease was lost does not count when the Lease is won again', async (t) => {
  const { clock, all } = replicas(1);
  const [only] = all as [Replica];
  only.reads = [];
  await pass(clock, all, 1_000);
  only.isCut = true;
  await pass(clock, all, 5_000);
  only.isCut = false;
  await pass(clock, all, 5_000);
  t.equal(only.begun, 2, 'the Lease was lost and won again');
  only.reads[0]?.();
  await pass(clock, all, 200);
  t.same(answering(all), [], 'the first read is older than the second holding of the Lease');
  only.reads[1]?.();
  await pass(clock, all, 200);
  t.same(answering(all), [0]);
});
