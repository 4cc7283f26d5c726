import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'tap';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { MAIN } from '../harness/programs.js';
import { limitsOf, runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';

const run = promisify(execFile);
const KEY = 'tencent.com/vcuda-enforcement';
const BLOCK = 268_435_456;

test('a pod without enforced limits, on a node that allows it, keeps its allocation, and the agent reports it as unenforced', async (t) => {
  const notes: SliceNote[] = [];
  const node = await startedNode(t, {
    knowsPods: true,
    config: { allowUnenforced: true },
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
  });
  const wanted = { ...simplePod(30, 16), annotations: { [KEY]: 'none' } };
  const given = await runPod(node, wanted);
  const booked = { unenforced: true, devices: [{ share: 30, memoryBytes: 16 * BLOCK }] };
  t.match(await limitsOf(given), booked);
  t.match(notes, [{ type: 'Normal', reason: 'GPUUnenforced', message: /^the limits are not enforced/ }]);
  const usage = async (): Promise<string> =>
    (await run(process.execPath, [MAIN, 'usage', '--display-socket', node.config.displaySocket])).stdout;
  t.match(await usage(), `/${wanted.name}/main (unenforced) `);
  const limits = await run(process.execPath, [MAIN, 'limits', '--display-socket', node.config.displaySocket]);
  t.match(limits.stdout, / 30 +- +4096 MiB .*\(unenforced\)/);

  node.kubelet.annotate(wanted.uid, {});
  t.match(await limitsOf(given), booked, 'while the container runs');
  await node.stopAgent();
  await node.startAgent();
  t.match(await limitsOf(given), booked);
  t.match(await usage(), '(unenforced)');
  await node.kubelet.startContainer(wanted.uid, 'main');
  t.match(await limitsOf(given), { unenforced: false }, 'the next start follows the annotation at that time');
  t.notMatch(await usage(), 'unenforced');
});

test('a node without unenforced slices enforces the limits and reports it in an event', async (t) => {
  const notes: SliceNote[] = [];
  const node = await startedNode(t, {
    knowsPods: true,
    seams: { sliceNotices: { note: (_owner, note) => void notes.push(note) } },
  });
  const given = await runPod(node, { ...simplePod(30, 16), annotations: { [KEY]: 'none' } });
  t.match(await limitsOf(given), { unenforced: false, devices: [{ share: 30, memoryBytes: 16 * BLOCK }] });
  t.same(notes, [
    {
      type: 'Warning',
      reason: 'GPULimitRefused',
      message: `${KEY}: this node has no unenforced slices (--allow-unenforced); the limits are enforced`,
    },
  ]);
});
