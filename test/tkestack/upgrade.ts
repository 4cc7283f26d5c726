import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import tap, { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { timeLimit } from '../harness/time-factor.js';
import { until } from '../harness/eventually.js';
import { gpuIndexes, admitted, only } from '../agent/node.js';
import { readRecorded, record, RECORDED_FILE, stable } from './recorded.js';
import { CHECKPOINT, podOf, TkestackNode } from './tkestack-node.js';

/** run.ts starts it on a private node. Arguments: folders of the original's programs and of logs, `--record`. */
const [programs = '', logs = '', mode] = process.argv.slice(2);

tap.setTimeout(timeLimit(600_000));

const SHARE = podOf(1, 'share', [['main', 30, 16]]);
const MULTI = podOf(2, 'multi', [
  ['a', 20, 8],
  ['b', 40, 16],
]);
const WHOLE = podOf(3, 'whole', [['main', 100, 0]]);
const PODS = [SHARE, MULTI, WHOLE];

/** The commands of the guide for the way back, word for word. */
function commandsOfTheGuide(): string {
  const guide = readFileSync(packageFile('docs/guides/from-tkestack.md'), 'utf8');
  const [, goBack = ''] = guide.split(/^## Go back$/m);
  const found = [...goBack.matchAll(/^```sh\n([^]*?)^```/gm)]
    .map(([, block]) => block)
    .find((block) => block?.startsWith('cd '));
  if (found === undefined) throw new Error('the guide has no commands for the node under "Go back"');
  return found;
}

test('the real tkestack gpu-manager is upgraded in place, and put back', async (t) => {
  const node = new TkestackNode(programs, logs);
  t.teardown(() => node.stop());
  await node.start();
  await node.startDaemon('original');
  for (const pod of PODS) admitted(await node.run(pod));
  for (const pod of PODS)
    for (const { name } of pod.containers) t.equal(await node.register(pod, name), 0, `${pod.name}/${name} registers`);
  const working = (): Promise<boolean> =>
    until('each container to use its GPU', async () => {
      const usage = await node.usage();
      return PODS.every(({ uid, containers }) =>
        containers.every(({ name }) => usage[uid]?.stat[name]?.dev.some(({ pids }) => (pids ?? []).length === 1)),
      );
    });
  await working();
  const recorded = await record(node, PODS);
  if (mode === '--record') {
    writeFileSync(RECORDED_FILE, `${JSON.stringify(recorded, null, 2)}\n`);
    return;
  }
  t.same(stable(recorded), stable(readRecorded()), 'it answers and writes what was recorded');
  const free = await node.free();
  const usedBefore = shown(await node.usage());
  const checkpoint = readFileSync(CHECKPOINT, 'utf8');

  await node.stopDaemon('SIGKILL');
  await node.startDaemon('ours');
  await working();
  t.same(await node.free(), free, 'our agent shows the same free cores and memory');
  t.same(shown(await node.usage()), usedBefore, 'and the same containers with their processes and memory');
  t.match(
    (await node.answer('/metrics')).match(/(?<=^vgpu_gpu_foreign_processes\S* )\d+$/gm),
    ['0', '0', '0', '0'],
    'no process of them is foreign',
  );
  for (const pod of PODS)
    for (const { name } of pod.containers)
      t.equal(await node.register(pod, name), 0, `${pod.name}/${name} registers with our agent`);
  t.equal(readFileSync(`${CHECKPOINT}.original`, 'utf8'), checkpoint, 'its checkpoint is kept');

  const ours = [podOf(4, 'new-whole', [['main', 100, 0]]), podOf(5, 'new-share', [['main', 60, 32]])];
  const given = [];
  for (const pod of ours) given.push(only(admitted(await node.run(pod))));
  t.same(given.flatMap(gpuIndexes).sort(), [2, 3], 'new pods get the GPUs that the old ones leave');
  t.equal(given[0]?.annotations['tencent.com/vcuda-memory'], '0', 'of a whole GPU, as from the original');
  t.match(await node.run(podOf(6, 'too-many', [['main', 50, 16]])), { ok: false, message: /gpu-manager: / });
  t.equal(
    only(admitted(await node.run(podOf(7, 'rest', [['main', 10, 8]])))).annotations['tencent.com/vcuda-core'],
    '10',
  );

  for (const pod of [...ours, podOf(7, 'rest', [])]) await node.end(pod);
  await node.stopDaemon('SIGTERM');
  execFileSync('sh', ['-euc', commandsOfTheGuide()]);
  t.equal(readFileSync(CHECKPOINT, 'utf8'), checkpoint);
  t.notOk(existsSync(`${CHECKPOINT}.original`));
  await node.startDaemon('original');
  await working();
  t.same(await node.free(), free, 'the original knows its pods again');
  for (const pod of PODS)
    for (const { name } of pod.containers) {
      await node.kubelet.startContainer(pod.uid, name);
      t.equal(await node.register(pod, name), 0, `${pod.name}/${name} starts again and registers`);
    }
  const after = only(admitted(await node.run(podOf(8, 'after', [['main', 100, 0]]))));
  t.ok([2, 3].includes(gpuIndexes(after)[0] ?? -1), 'and allocates a GPU that nobody has');
});

/** Containers by pod, with their GPUs, processes and memory; not the pids that a daemon lists in another order. */
function shown(usage: Awaited<ReturnType<TkestackNode['usage']>>): object {
  return Object.fromEntries(
    Object.entries(usage).map(([uid, { project, spec, stat }]) => [
      uid,
      {
        project,
        spec,
        stat: Object.entries(stat)
          .map(([name, { dev }]) => [name, dev.map(({ card_idx: index, mem, pids }) => ({ index, mem, pids }))])
          .sort(),
      },
    ]),
  );
}
