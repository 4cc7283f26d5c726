import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'tap';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { MAIN } from '../harness/programs.js';
import { limitsOf, runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';
import { FakeContainer } from './slices/fake-gpu.js';

const run = promisify(execFile);
const BLOCK = 268_435_456;
const KEY = 'tencent.com/vcuda-memory-oversubscribe';

test('a pod of memory class low may exceed its booked memory on a node that allows it, until its annotation changes', async (t) => {
  const node = await startedNode(t, { knowsPods: true, config: { memoryOversubscription: 1.5 } });
  const wanted = { ...simplePod(30, 16), annotations: { [KEY]: 'low' } };
  const given = await runPod(node, wanted);
  t.match((await limitsOf(given)).devices, [{ memoryBytes: 16 * BLOCK, hostBackedBytes: 8 * BLOCK }]);

  const { allocation } = await limitsOf(given);
  new FakeContainer(node.config.virtualManagerPath, allocation).holdOnHost(0, 3 * BLOCK);
  const { stdout } = await run(process.execPath, [MAIN, 'usage', '--display-socket', node.config.displaySocket]);
  t.match(stdout, / 0 MiB \+ 768 MiB on the host +4096 MiB/);

  node.kubelet.annotate(wanted.uid, { 'tencent.com/vcuda-memory-limit': '4', [KEY]: 'low' });
  t.match(
    (await limitsOf(given)).devices,
    [{ memoryBytes: 4 * BLOCK, hostBackedBytes: 2 * BLOCK }],
    'the limit in force counts',
  );
  node.kubelet.annotate(wanted.uid, { [KEY]: 'high' });
  const [device] = (await limitsOf(given)).devices;
  t.match(device, { memoryBytes: 16 * BLOCK });
  t.equal(device?.hostBackedBytes, undefined);
});

test('a node without memory oversubscription refuses the annotation with an event, and the container runs', async (t) => {
  const notes: SliceNote[] = [];
  const node = await startedNode(t, {
    knowsPods: true,
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
  });
  const given = await runPod(node, { ...simplePod(30, 16), annotations: { [KEY]: 'low' } });
  const [device] = (await limitsOf(given)).devices;
  t.equal(device?.hostBackedBytes, undefined);
  t.same(notes, [
    {
      type: 'Warning',
      reason: 'GPULimitRefused',
      message: `${KEY}: this node does not oversubscribe memory (--memory-oversubscription)`,
    },
  ]);
});
