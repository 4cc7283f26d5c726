import { test, type Test } from 'tap';
import { labelProblem } from '../../../src/kube/label.js';
import { silentLog } from '../../../src/host/log.js';
import { NodeLabels } from '../../../src/agent/api-server/node-labels.js';
import { WorkQueue } from '../../../src/kube/work-queue.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { apiServer, clientOf, NODE } from '../../kube/setting.js';

function labelling(
  t: Test,
  server: ApiServer,
): { readonly labels: NodeLabels; readonly queue: WorkQueue; readonly clock: ManualClock } {
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
  const clock = new ManualClock();
  const labels = new NodeLabels({ client: clientOf(t, server.url), queue, nodeName: NODE, clock, log: silentLog() });
  t.teardown(async () => {
    labels.stop();
    await queue.stop();
  });
  return { labels, queue, clock };
}

const idle = (queue: WorkQueue): Promise<true> => eventually(() => queue.counts.waiting === 0);
const labelsOf = (server: ApiServer): unknown => server.read('nodes', '', NODE)?.metadata.labels;

test('labels are added to the node and other labels are left alone', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', { metadata: { name: NODE, labels: { 'kubernetes.io/os': 'linux', old: 'x' } } });
  const { labels, queue } = labelling(t, server);
  labels.label(new Map([['gaia.tencent.com/gpu-model', 'A100']]));
  labels.label(
    new Map([
      ['zone', 'b'],
      ['old', null],
    ]),
  );
  labels.annotate(new Map([['tencent.com/gpus', '[]']]));
  labels.start();
  await idle(queue);
  t.same(labelsOf(server), { 'kubernetes.io/os': 'linux', 'gaia.tencent.com/gpu-model': 'A100', zone: 'b' });
  t.same(server.read('nodes', '', NODE)?.metadata.annotations, { 'tencent.com/gpus': '[]' });
});

test('a node is not written when no labels are configured', async (t) => {
  const server = await apiServer(t);
  const { labels, queue } = labelling(t, server);
  labels.start();
  await idle(queue);
  t.equal(server.requests.length, 0);
});

test('an invalid label does not prevent the valid ones', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', { metadata: { name: NODE } });
  const { labels, queue } = labelling(t, server);
  labels.label(
    new Map([
      ['good', 'yes'],
      ['bad', 'NVIDIA H200'],
      ['Bad/prefix', 'x'],
      ['', 'x'],
    ]),
  );
  await idle(queue);
  t.same(labelsOf(server), { good: 'yes' });
});

test('a node that registers later gets its labels then, and a label that was removed is restored', async (t) => {
  const server = await apiServer(t);
  const { labels, queue, clock } = labelling(t, server);
  labels.label(new Map([['good', 'yes']]));
  labels.start();
  await eventually(() => (queue.counts.failures.get('not-found') ?? 0) > 0);
  server.seed('nodes', { metadata: { name: NODE } });
  await idle(queue);
  t.same(labelsOf(server), { good: 'yes' });
  server.edit('nodes', '', NODE, (node) => ({ ...node, metadata: { ...node.metadata, labels: {} } }));
  clock.advance(600_000);
  await idle(queue);
  t.same(labelsOf(server), { good: 'yes' });
});

test('labels that Kubernetes accepts are distinguished from those that it refuses', (t) => {
  for (const [key, value] of [
    ['a', ''],
    ['a.b/c', 'd'],
    ['gaia.tencent.com/gpu-model', 'NVIDIA-A100_80.GB'],
    ['x'.repeat(63), 'y'.repeat(63)],
  ] as const)
    t.equal(labelProblem(key, value), null, key);
  for (const [key, value] of [
    ['', 'x'],
    ['/a', 'x'],
    ['a/', 'x'],
    ['A.b/c', 'x'],
    ['a', 'two words'],
    ['a', '-x'],
    ['a', 'x'.repeat(64)],
    ['x'.repeat(64), 'y'],
    ['a/b/c', 'd'],
    ['ä', 'x'],
  ] as const) {
    t.type(labelProblem(key, value), 'string', `${key}=${value}`);
  }
  t.end();
});

test('the version of the kubelet is known after the first answer', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', { metadata: { name: NODE }, status: { nodeInfo: { kubeletVersion: 'v1.31.2' } } });
  const { labels, queue } = labelling(t, server);
  t.equal(labels.kubeletVersion, null);
  labels.label(new Map([['good', 'yes']]));
  await idle(queue);
  t.equal(labels.kubeletVersion, 'v1.31.2');
});
