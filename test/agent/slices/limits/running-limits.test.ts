import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { type LiveLimit } from '../../../../src/abi/limits-file.js';
import { LIMITS_FILE } from '../../../../src/abi/vgpu-abi.js';
import { NO_REQUEST } from '../../../../src/agent/slices/limits/live-limits.js';
import { silentLog } from '../../../../src/host/log.js';
import type { PodLimitAnnotations, SliceNote } from '../../../../src/agent/slices/ports.js';
import { RunningLimits } from '../../../../src/agent/slices/limits/running-limits.js';
import { eventually } from '../../../harness/eventually.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { FakeContainer } from '../fake-gpu.js';
import { ALLOCATION, gpuLimits, MIB, openSlices, sliceSpec, type TestSlices } from '../node-slices.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const POD = sliceSpec().owner.podUid;
const MEMORY = 'tencent.com/vcuda-memory-limit';
const SHARE = 'tencent.com/vcuda-share-limit';
const SOFT = 'tencent.com/vcuda-core-limit';

/** Pods whose annotations the test sets. */
class Pods implements PodLimitAnnotations {
  readonly #annotations = new Map<string, ReadonlyMap<string, string>>();
  readonly #listeners = new Set<(podUid: string) => void>();

  annotations(podUid: string): ReadonlyMap<string, string> | null {
    return this.#annotations.get(podUid) ?? null;
  }

  onAnnotations(listener: (podUid: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  annotate(annotations: Readonly<Record<string, string>>, podUid = POD): void {
    this.#annotations.set(podUid, new Map(Object.entries(annotations)));
    for (const listener of this.#listeners) listener(podUid);
  }
}

interface Resizable {
  readonly node: TestSlices;
  readonly pods: Pods;
  readonly notes: SliceNote[];
  readonly runningLimits: RunningLimits;
  readonly clock: ManualClock;
  readonly container: FakeContainer;
  readonly live: () => LiveLimit;
}

async function resizable(t: Teardown, earlier?: Resizable): Promise<Resizable> {
  const pods = earlier?.pods ?? new Pods();
  const node =
    earlier === undefined
      ? await openSlices(t, { limitAnnotations: pods })
      : await earlier.node.again({ limitAnnotations: pods });
  const clock = new ManualClock();
  const notes: SliceNote[] = [];
  const notices = { note: (_owner: unknown, note: SliceNote) => void notes.push(note) };
  const runningLimits = new RunningLimits({
    slices: node.slices,
    policy: node.policy,
    operator: node.operator,
    limitAnnotations: pods,
    notices,
    clock,
    log: silentLog(),
  });
  runningLimits.start();
  t.teardown(() => runningLimits.stop());
  const container = new FakeContainer(node.base, ALLOCATION);
  return { node, pods, notes, runningLimits, clock, container, live: () => container.told(0) };
}

const GIVEN = { memoryBytes: 1024 * MIB, share: 30, softLimit: null };

test('a changed annotation is published in place, and the pod gets an event', async (t) => {
  const { node, pods, notes, live } = await resizable(t);
  await node.slices.start(sliceSpec());
  const before = await stat(join(node.base, ALLOCATION, LIMITS_FILE));
  pods.annotate({ [MEMORY]: '512Mi', [SHARE]: '20', [SOFT]: '60' });
  t.match(live(), { memoryBytes: 512 * MIB, share: 20, softLimit: 60, generation: 1 });
  t.equal((await stat(join(node.base, ALLOCATION, LIMITS_FILE))).ino, before.ino);
  t.same(notes, [{ type: 'Normal', reason: 'GPULimitChanged', message: 'main: 512 MiB, share 20, up to 60' }]);
  pods.annotate({ [SOFT]: '60' });
  t.match(live(), { memoryBytes: 1024 * MIB, share: 30, softLimit: 60, generation: 2 });
  pods.annotate({});
  t.match(live(), { ...GIVEN, generation: 3 });
  pods.annotate({ unrelated: 'x' });
  t.equal(live().generation, 3, 'a change without effect is not published');
  t.equal(notes.length, 3);
});

test('a memory limit below the usage is refused with one event, and all other limits apply', async (t) => {
  const { node, pods, notes, live, container } = await resizable(t);
  await node.slices.start(sliceSpec());
  container.hold(0, 0, 600 * MIB);
  pods.annotate({ [MEMORY]: '2', [SHARE]: '20' });
  t.match(live(), { memoryBytes: 1024 * MIB, share: 20, generation: 1 });
  t.match(notes, [
    {
      type: 'Warning',
      reason: 'GPULimitRefused',
      message: 'main: a memory limit of 512 MiB is not set, 600 MiB are in use; it stays 1024 MiB',
    },
    { type: 'Normal', reason: 'GPULimitChanged', message: 'main: 1024 MiB, share 20' },
  ]);
  pods.annotate({ [MEMORY]: '2', [SHARE]: '20', other: 'x' });
  t.equal(notes.length, 2);
  container.hold(0, 0, 100 * MIB);
  pods.annotate({ [MEMORY]: '2', [SHARE]: '25' });
  t.match(live(), { memoryBytes: 512 * MIB, share: 25 });
});

test('memory that the driver keeps for itself counts as usage', async (t) => {
  const { node, pods, live, container } = await resizable(t);
  await node.slices.start(sliceSpec());
  container.hold(0, 0, 400 * MIB);
  node.slices.started.get(ALLOCATION)?.limits.change(0, { driverOverheadBytes: 200 * MIB });
  pods.annotate({ [MEMORY]: '2' });
  t.equal(live().memoryBytes, 1024 * MIB);
});

test('an unreadable usage file is no evidence: a lower memory limit waits', async (t) => {
  const { node, pods, notes, live } = await resizable(t);
  await node.slices.start(sliceSpec());
  await writeFile(join(node.base, ALLOCATION, 'usage/vgpu.usage'), '');
  pods.annotate({ [MEMORY]: '2' });
  t.equal(live().memoryBytes, 1024 * MIB);
  t.match(notes, [{ message: /its use cannot be read/ }]);
});

test('requests beyond the allocation are refused, and malformed values are named', async (t) => {
  const { node, pods, notes, live } = await resizable(t);
  await node.slices.start(sliceSpec());
  pods.annotate({ [MEMORY]: '100Gi', [SHARE]: 'all' });
  t.match(live(), { ...GIVEN, generation: 0 });
  t.match(notes, [
    {
      type: 'Warning',
      reason: 'GPULimitRefused',
      message: /vcuda-share-limit: "all" is not .*; the memory stays 1024 MiB/,
    },
  ]);
});

test('a container starts with the limits of its pod, and keeps its earlier limits while the pod is unknown', async (t) => {
  const first = await resizable(t);
  first.pods.annotate({ [SHARE]: '10' });
  await first.node.slices.start(sliceSpec());
  t.match(first.live(), { share: 10, memoryBytes: 1024 * MIB, generation: 0 });
  await first.node.slices.close();

  const second = await resizable(t, { ...first, pods: new Pods() });
  await second.node.slices.restore(sliceSpec());
  const slice = second.node.slices.started.get(ALLOCATION);
  if (slice === undefined) throw new Error('no slice');
  second.runningLimits.reconsider(slice);
  t.match(second.live(), { share: 10 }, 'the pod is not known yet');
  second.pods.annotate({});
  t.match(second.live(), { share: 30 }, 'the pod is known and requests nothing');
});

test('each of several containers of a pod stays within its own limits', async (t) => {
  const { node, pods } = await resizable(t);
  const other = 'ffeeddccbbaa9988';
  await node.slices.start(sliceSpec());
  await node.slices.start(
    sliceSpec({
      allocation: other,
      owner: { ...sliceSpec().owner, container: 'side' },
      devices: [gpuLimits(0, { memoryBytes: 256 * MIB, share: 5 })],
    }),
  );
  pods.annotate({ [MEMORY]: '512Mi', [SHARE]: '20' });
  t.match(new FakeContainer(node.base, ALLOCATION).told(0), { memoryBytes: 512 * MIB, share: 20 });
  t.match(new FakeContainer(node.base, other).told(0), { memoryBytes: 256 * MIB, share: 5 });
});

test('the setting of an operator precedes that of the pod, outlives agent and container, and ends when it is reset', async (t) => {
  const first = await resizable(t);
  first.pods.annotate({ [SHARE]: '20' });
  await first.node.slices.start(sliceSpec());
  t.same(await first.runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 5 }), { ok: true, notes: [] });
  t.same(await first.runningLimits.ask(ALLOCATION, { ...NO_REQUEST, memoryBytes: 300 * MIB }), { ok: true, notes: [] });
  t.match(first.live(), { share: 5, memoryBytes: 300 * MIB });
  first.pods.annotate({ [SHARE]: '25' });
  t.match(first.live(), { share: 5 });
  t.equal((await stat(join(first.node.base, ALLOCATION, 'operator.json'))).mode & 0o777, 0o600);
  await first.node.slices.start(sliceSpec());
  t.match(first.live(), { share: 5, memoryBytes: 300 * MIB }, 'the container started again');
  await first.node.slices.close();

  const second = await resizable(t, first);
  await second.node.slices.restore(sliceSpec());
  second.pods.annotate({ [SHARE]: '26' });
  t.match(second.live(), { share: 5, memoryBytes: 300 * MIB }, 'the agent started again');
  t.same(await second.runningLimits.release(ALLOCATION), { ok: true, notes: [] });
  t.match(second.live(), { share: 26, memoryBytes: 1024 * MIB });
  await t.rejects(readFile(join(first.node.base, ALLOCATION, 'operator.json')), { code: 'ENOENT' });
});

test('a setting below the usage of a container is refused as a whole', async (t) => {
  const { node, runningLimits, live, container } = await resizable(t);
  await node.slices.start(sliceSpec());
  container.hold(0, 1, 800 * MIB);
  t.match(await runningLimits.ask(ALLOCATION, { memoryBytes: 512 * MIB, share: 1, softLimit: null }), {
    ok: false,
    code: 'in-use',
    reason: /800 MiB are in use/,
  });
  t.match(live(), GIVEN);
  t.match(await runningLimits.ask('0000000000000000', NO_REQUEST), { ok: false, code: 'unknown' });
  t.match(await runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 90 }), {
    ok: false,
    code: 'more-than-given',
    reason: /share stays 30/,
  });
});

test('the setting of an operator ends with the allocation', async (t) => {
  const { node, runningLimits, live } = await resizable(t);
  await node.slices.start(sliceSpec());
  await runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 5 });
  await node.slices.prepare(ALLOCATION, true);
  await node.slices.start(sliceSpec());
  t.match(live(), GIVEN);
});

for (const text of ['', '{', 'null', '[]', '{"share":"5"}', '{"share":-1}', '{"share":1e99}', null]) {
  test(`unreadable operator settings (${text ?? 'a folder'}) leave the container its last limits`, async (t) => {
    const first = await resizable(t);
    await first.node.slices.start(sliceSpec());
    await first.runningLimits.ask(ALLOCATION, { memoryBytes: 300 * MIB, share: 5, softLimit: null });
    await first.node.slices.close();
    const path = join(first.node.base, ALLOCATION, 'operator.json');
    await rm(path);
    if (text === null) await mkdir(path);
    else await writeFile(path, text);

    const second = await resizable(t, first);
    await second.node.slices.restore(sliceSpec());
    second.pods.annotate({ [SHARE]: '20' });
    t.match(second.live(), { share: 5, memoryBytes: 300 * MIB }, 'the agent started again');
    t.match(second.notes, [{ reason: 'GPULimitRefused', message: /limits that an operator set cannot be read/ }]);
    second.pods.annotate({ [SHARE]: '3' });
    t.match(second.live(), { share: 3 }, 'the pod may request less');
    await second.node.slices.start(sliceSpec());
    t.match(second.live(), { share: 3, memoryBytes: 300 * MIB }, 'the container started again');
    if (text === null) return;
    t.match(await second.runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 7 }), { ok: true });
    t.match(second.live(), { share: 7, memoryBytes: 300 * MIB }, 'limits without a request stay');
    t.match(await second.runningLimits.release(ALLOCATION), { ok: true });
    t.match(second.live(), { share: 3, memoryBytes: 1024 * MIB });
  });
}

test('a container with unknown limits does not start, and a running one has the smallest share until its limits are known', async (t) => {
  const first = await resizable(t);
  await first.node.slices.start(sliceSpec());
  await first.runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 5 });
  await first.node.slices.close();
  const path = join(first.node.base, ALLOCATION, 'operator.json');
  const content = await readFile(path);
  await writeFile(path, '{');
  await writeFile(join(first.node.base, ALLOCATION, LIMITS_FILE), '');

  const second = await resizable(t, first);
  await t.rejects(second.node.slices.start(sliceSpec()), {
    message: /operator\.json: .*remove it to give the container/,
  });
  await second.node.slices.restore(sliceSpec());
  t.match(second.live(), { share: 1 });
  await writeFile(path, content);
  second.clock.advance(1_000);
  await eventually(() => second.live().share === 5, 'the file to be read again');
});

test('a setting of an operator causes an event of the pod', async (t) => {
  const { node, notes, runningLimits } = await resizable(t);
  await node.slices.start(sliceSpec());
  await runningLimits.ask(ALLOCATION, { ...NO_REQUEST, share: 5 });
  await runningLimits.release(ALLOCATION);
  t.match(notes, [
    { reason: 'GPULimitChanged', message: /share 5, set by an operator of the node$/ },
    { reason: 'GPULimitChanged', message: /share 30, set by an operator of the node$/ },
  ]);
});

test('the priority of a running pod follows its annotation, and an unknown word is refused', async (t) => {
  const { node, pods, notes, live } = await resizable(t);
  await node.slices.start(sliceSpec());
  pods.annotate({ 'tencent.com/vcuda-priority': 'main=low,side=high' });
  t.match(live(), { ...GIVEN, priority: 'low', generation: 1 });
  pods.annotate({ 'tencent.com/vcuda-priority': 'high' });
  t.match(live(), { ...GIVEN, priority: 'high', generation: 2 });
  pods.annotate({ 'tencent.com/vcuda-priority': 'urgent' });
  t.equal(live().priority, undefined);
  t.match(notes, [
    { reason: 'GPULimitChanged', message: 'main: 1024 MiB, share 30, priority low' },
    { reason: 'GPULimitChanged', message: 'main: 1024 MiB, share 30, priority high' },
    { reason: 'GPULimitRefused', message: 'tencent.com/vcuda-priority: "urgent" is not high, normal or low' },
    { reason: 'GPULimitChanged', message: 'main: 1024 MiB, share 30' },
  ]);
});
