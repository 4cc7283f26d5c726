/** A container that has a share of 30 and is charged for what it launches, in its usage file. */
import { test } from 'tap';
import { FakeContainer, listed } from '../fake-gpu.js';
import { ALLOCATION, MIB } from '../node-slices.js';
import { greetingBytes, ownStartTicks, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';
import { audited, GPU } from './audited-node.js';

type Teardown = Parameters<typeof audited>[0];

/** A node whose container is charged so many milliseconds in every tenth of a second, for kernels of 2 ms. */
async function charged(t: Teardown, policy: 'report' | 'evict' = 'report') {
  const node = await audited(t, policy);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  t.teardown(async () => void socket.destroy());
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  const container = new FakeContainer(node.node.base, ALLOCATION);
  let [chargedNs, launches, waits] = [0, 0, 0];
  return {
    ...node,
    /**
     * `reported`: percent of the GPU as the driver says. `isBack`: the container sets the number of its launches back
     * again and again.
     */
    async work(seconds: number, msOfTenth: number, reported = msOfTenth, isBack = false): Promise<void> {
      node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, reported)]);
      for (let step = 0; step < 10 * seconds; step += 1) {
        chargedNs += msOfTenth * 1e6;
        launches = isBack && step % 2 === 1 ? 1 : launches + Math.ceil(msOfTenth / 2);
        waits += 1;
        container.count(0, { chargedNs, launches, samples: launches, waits });
        await node.steps(1);
      }
    },
  };
}

test('a container that uses more than its share is reported within 20 s, and evicted if the policy says so', async (t) => {
  const node = await charged(t, 'evict');
  await node.work(20, 77);
  t.same(node.codes(), ['over-share']);
  t.match(node.notes, [
    { reason: 'GPUAudit', message: /^main: 77 % of the time of GPU-\S+ in use over ten seconds, 30 % are allowed$/ },
  ]);
  t.same(node.evicted, [], 'one account is not enough to evict');
  await node.work(10, 77);
  t.match(node.evicted, [/^trainer: 77 % of the time/]);
  await node.work(30, 30);
  t.same(node.codes(), [], 'the finding ends');
});

test('a container that charges a third of what the driver reports is over its share', async (t) => {
  const node = await charged(t);
  await node.work(60, 25, 75);
  t.same(node.codes(), ['over-share']);
});

test('a container that hides its launches is over its share', async (t) => {
  const node = await charged(t);
  await node.work(30, 77, 77, true);
  t.same(node.codes().toSorted(), ['over-share', 'tampered']);
});

test('up to ten points beyond its share are reported and no reason to evict', async (t) => {
  const node = await charged(t, 'evict');
  await node.work(60, 38);
  t.same(node.codes(), ['over-share']);
  t.same(node.evicted, []);
});

test('a container within its share, through a resize, has no finding', async (t) => {
  const node = await charged(t);
  await node.work(15, 30);
  for (const share of [70, 20, 50, 30]) {
    node.node.slices.started.get(ALLOCATION)?.resize([{ memoryBytes: 1024 * MIB, share, softLimit: null }]);
    await node.work(12, share);
    t.same(node.codes(), [], `a share of ${share}`);
  }
});

test('a container with a soft limit that uses what it is granted has no finding', async (t) => {
  const node = await charged(t);
  const limits = [{ memoryBytes: 1024 * MIB, share: 30, softLimit: 100 }];
  node.node.slices.started.get(ALLOCATION)?.resize(limits);
  await node.work(30, 95);
  t.same(node.codes(), []);
});

test('a container that starts, works and rests has no finding', async (t) => {
  const node = await charged(t);
  for (let round = 0; round < 4; round += 1) {
    await node.work(1, 35);
    await node.work(5, 28);
    await node.work(8, 0);
  }
  t.same(node.codes(), []);
});
