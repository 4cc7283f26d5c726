import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import type { FaultEffect } from '../../harness/api-server/fault.js';
import { generator } from '../../generator.js';
import { QuotaCluster } from '../cluster.js';
import { SimulatedKueue } from './simulated-kueue.js';

const HARD = 10;

async function withKueue(
  t: Test,
  replicas = 1,
): Promise<{ readonly cluster: QuotaCluster; readonly kueue: SimulatedKueue }> {
  const cluster = await QuotaCluster.start(0);
  t.teardown(() => cluster.stop());
  const kueue = new SimulatedKueue(cluster);
  for (let index = 0; index < replicas; index++) await cluster.join({ kueue: true });
  await cluster.createGroup('team', { 'limits.cpu': HARD });
  await eventually(() => cluster.used('team') === '0', 'the group');
  await kueue.whenActive();
  return { cluster, kueue };
}

const used = (cluster: QuotaCluster, amount: number): Promise<unknown> =>
  eventually(() => cluster.used('team') === String(amount), `${amount} used`);

test('a Workload with room is admitted, and charged once with its Job and pods', async (t) => {
  const { cluster, kueue } = await withKueue(t);
  await kueue.submit('train', 'team', 3, 2);
  await kueue.whenState('train', 'Ready');
  t.equal(kueue.message('train'), 'charged to group team');
  t.ok((await kueue.admit('train')).ok, 'the Job starts');
  for (let index = 0; index < 3; index++) t.ok((await kueue.pod('train', index, 2, 'team')).ok, `pod ${index} starts`);
  await used(cluster, 6);
  // Another replica starts with the objects alone.
  await cluster.join({ kueue: true });
  await used(cluster, 6);
});

test('a Workload without room waits with the reason, and is admitted when room appears', async (t) => {
  const { cluster, kueue } = await withKueue(t);
  await kueue.submit('first', 'team', 4, 2);
  await kueue.whenState('first', 'Ready');
  await kueue.admit('first');
  await kueue.submit('low', 'team', 2, 2);
  await kueue.submit('high', 'team', 2, 2, 100);
  for (const name of ['low', 'high'])
    await eventually(() => kueue.message(name).includes('exceeded quota: team'), `the reason of ${name}`);
  t.match(kueue.message('low'), /^waiting for quota: /);
  t.equal(kueue.state('low'), 'Pending');
  await kueue.finish('first');
  await kueue.whenState('high', 'Ready');
  await kueue.whenState('low', 'Ready');
  await used(cluster, 8);
});

test('higher priority is admitted first', async (t) => {
  const { kueue } = await withKueue(t);
  await kueue.submit('first', 'team', 5, 2);
  await kueue.whenState('first', 'Ready');
  await kueue.submit('low', 'team', 5, 2);
  await eventually(() => kueue.message('low').startsWith('waiting'), 'low waits');
  await kueue.submit('high', 'team', 5, 2, 100);
  await eventually(() => kueue.message('high').startsWith('waiting'), 'high waits');
  await kueue.finish('first');
  await kueue.whenState('high', 'Ready');
  t.equal(kueue.state('low'), 'Pending');
});

for (const [how, release] of [
  ['finished', (kueue: SimulatedKueue) => kueue.finish('train')],
  ['evicted', (kueue: SimulatedKueue) => kueue.beginEviction('train')],
  ['deleted', (kueue: SimulatedKueue) => kueue.remove('train')],
] as const)
  test(`a Workload that is ${how} gives back once`, async (t) => {
    const { cluster, kueue } = await withKueue(t);
    await kueue.submit('train', 'team', 3, 2);
    await kueue.submit('other', 'team', 1, 2);
    for (const name of ['train', 'other']) {
      await kueue.whenState(name, 'Ready');
      await kueue.admit(name);
    }
    await used(cluster, 8);
    await release(kueue);
    if (how === 'evicted') {
      await kueue.submit('next', 'team', 2, 2);
      await eventually(
        () => kueue.message('next').startsWith('waiting'),
        'another Workload to wait for its pods to end',
      );
      t.equal(cluster.used('team'), '8', 'it is charged while Kueue stops its pods');
      t.equal(kueue.state('train'), 'Pending', 'no answer while Kueue stops the Job');
      await kueue.remove('next');
      await kueue.endEviction('train');
    }
    await used(cluster, 2);
    if (how === 'evicted') {
      await kueue.reserve('train');
      await kueue.whenState('train', 'Ready');
      await used(cluster, 8);
    }
    t.pass();
  });

test('a Workload whose Job names no group is admitted without a charge', async (t) => {
  const { cluster, kueue } = await withKueue(t);
  await kueue.submit('free', '', 30, 2);
  await kueue.whenState('free', 'Ready');
  t.equal(kueue.message('free'), `not charged: it has no label ${GROUP_LABEL}`);
  t.equal(cluster.used('team'), '0');
});

test('a Workload that was left in Retry without quota of Kueue becomes Pending', async (t) => {
  const { kueue, cluster } = await withKueue(t);
  await kueue.submit('stuck', 'team', 30, 2);
  await eventually(() => kueue.message('stuck').startsWith('waiting'), 'it waits');
  await kueue.answerRetry('stuck');
  await kueue.endEviction('stuck');
  await kueue.whenState('stuck', 'Pending');
  t.equal(cluster.used('team'), '0');
});

test('a Job that Kueue does not hold back is charged itself', async (t) => {
  const { cluster, kueue } = await withKueue(t);
  await kueue.submit('train', 'team', 3, 2);
  await kueue.whenState('train', 'Ready');
  await kueue.admit('train');
  const { client } = cluster;
  const own = await client.request({
    method: 'POST',
    path: '/apis/batch/v1/namespaces/default/jobs',
    body: {
      metadata: { name: 'own', labels: { [GROUP_LABEL]: 'team' } },
      spec: {
        parallelism: 3,
        template: { spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: 2 } } }] } },
      },
    },
  });
  t.notOk(own.ok, 'it does not fit');
  await used(cluster, 6);
});

for (const seed of [1, 2, 3, 4])
  test(`a random history with restarts and faults charges each Workload exactly once: seed ${seed}`, (t) =>
    history(t, seed));

const FAULTS: readonly FaultEffect[] = [
  { do: 'lose-answer' },
  { do: 'reset' },
  { do: 'answer', code: 500 },
  { do: 'delay', ms: 50 },
];

/** Every admitted Workload counts its pods, all others nothing; no Workload waits beside room for it. */
async function history(t: Test, seed: number): Promise<void> {
  const random = generator(seed);
  const { cluster, kueue } = await withKueue(t, 2);
  const size = new Map<string, number>();
  const phase = new Map<string, 'asked' | 'evicting' | 'evicted' | 'done'>();
  const pick = (...phases: readonly string[]): string | null => {
    const names = [...phase.entries()].filter(([, is]) => phases.includes(is)).map(([name]) => name);
    return names[Math.floor(random() * names.length)] ?? null;
  };
  /** Workloads that Kueue stops, and that were admitted. */
  const stopping = new Set<string>();
  const held = (): readonly string[] =>
    [...phase.entries()]
      .filter(([name, is]) =>
        is === 'asked' ? kueue.state(name) === 'Ready' : is === 'evicting' && stopping.has(name),
      )
      .map(([name]) => name);
  const heldSize = (): number => held().reduce((sum, name) => sum + (size.get(name) ?? 0), 0);
  for (let step = 0; step < 30; step++) {
    const chosen = random();
    const name = pick('asked');
    // The quota is the only program here that patches Workloads.
    if (random() < 0.3)
      cluster.server.inject(
        { verb: 'patch', resource: 'workloads' },
        FAULTS[Math.floor(random() * FAULTS.length)] as FaultEffect,
        1,
      );
    if (chosen < 0.3) {
      const created = `job-${step}`;
      const pods = 1 + Math.floor(random() * 6);
      size.set(created, pods);
      phase.set(created, 'asked');
      await kueue.submit(created, 'team', pods, 1, Math.floor(random() * 3));
    } else if (chosen < 0.45 && name !== null) {
      await kueue.touch(name);
      if (kueue.state(name) === 'Ready') await kueue.admit(name);
    } else if (chosen < 0.6 && name !== null) {
      const isAdmitted = kueue.state(name) === 'Ready';
      await kueue.beginEviction(name);
      // The check may have answered before Kueue wrote.
      phase.set(name, 'evicting');
      if (isAdmitted) stopping.add(name);
      else stopping.delete(name);
    } else if (chosen < 0.75) {
      const evicting = pick('evicting');
      if (evicting === null) continue;
      await kueue.endEviction(evicting);
      phase.set(evicting, 'evicted');
    } else if (chosen < 0.85) {
      const evicted = pick('evicted');
      if (evicted === null) continue;
      await kueue.reserve(evicted);
      phase.set(evicted, 'asked');
    } else if (chosen < 0.92) {
      const any = pick('asked', 'evicting', 'evicted');
      if (any === null) continue;
      phase.set(any, 'done');
      await (random() < 0.5 && kueue.state(any) === 'Ready' ? kueue.finish(any) : kueue.remove(any));
    } else if (cluster.services[0] !== undefined) {
      await cluster.leave(cluster.services[0]);
      await cluster.join({ kueue: true });
    }
    if (heldSize() > HARD) t.fail(`step ${step}: ${heldSize()} of ${HARD} admitted`);
  }
  await eventually(
    () =>
      cluster.used('team') === String(heldSize()) &&
      [...phase.entries()].every(
        ([waiting, is]) =>
          is !== 'asked' || kueue.state(waiting) === 'Ready' || heldSize() + (size.get(waiting) ?? 0) > HARD,
      ),
    'the charges to be those of the admitted Workloads, and nothing to wait beside room for it',
  );
  t.ok(heldSize() <= HARD, `${heldSize()} of ${HARD} admitted`);
}
