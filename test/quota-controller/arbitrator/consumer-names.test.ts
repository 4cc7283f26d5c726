import { test } from 'tap';
import { parse } from 'yaml';
import { eventually } from '../../harness/eventually.js';
import { ArbitratedCluster } from './arbitrated-cluster.js';

/** A Consumer in the names of a ResourceQuota. */
const CONSUMER = `
spec:
  hard:
    requests.cpu: "1"
    requests.memory: 1Gi
    limits.cpu: "2"
    limits.memory: 2Gi
  reserved:
    limits.memory: 1Gi
`;

test('a Consumer in the names of a ResourceQuota bounds requests and limits, and its Allocation copies it', async (t) => {
  const on = await ArbitratedCluster.start();
  t.teardown(() => on.stop());
  const { spec } = parse(CONSUMER) as { readonly spec: Record<string, object> };
  on.addNode('node1', { cpu: '8', memory: '16Gi' });
  on.addNamespaces('defaults', 'bare', 'none');
  on.addConsumer('defaults', spec);
  on.addConsumer('bare', { hard: { cpu: 1, memory: '1Gi', 'limits.cpu': 2 } });
  const asked = { cpu: '1500m', memory: '2Gi' };
  for (const namespace of ['defaults', 'bare', 'none'])
    on.addPod(namespace, 'p', asked, { limits: { cpu: '3', memory: '4Gi' } });
  await on.arbitrate();
  await eventually(() => Object.keys(on.statusOf('none').deserved ?? {}).length > 0, 'the shares');
  const { hard, reserved, deserved, overused } = on.statusOf('defaults');
  t.same({ hard, reserved }, spec, 'as they are written');
  t.same(deserved, { cpu: '1', memory: '1Gi', 'limits.cpu': '2', 'limits.memory': '2Gi' });
  t.same(overused, ['cpu', 'limits.cpu', 'limits.memory', 'memory']);
  t.match(on.statusOf('bare').deserved, { cpu: '1', memory: '1Gi', 'limits.cpu': '2' });
  t.match(on.statusOf('none'), { overused: [], deserved: { ...asked, 'limits.cpu': '3' } }, 'others are not bounded');
  t.equal(on.condition('consumers', 'defaults', 'Accepted')?.status, 'True');
});

test('two spellings of one resource with two amounts are a problem of the Consumer', async (t) => {
  const on = await ArbitratedCluster.start();
  t.teardown(() => on.stop());
  on.addNode('node1', { cpu: '8' });
  on.addNamespaces('odd');
  on.addConsumer('odd', { hard: { cpu: 1, 'requests.cpu': 2 } });
  await on.arbitrate();
  await eventually(() => on.condition('consumers', 'odd', 'Accepted')?.status === 'False', 'the condition');
  t.match(on.condition('consumers', 'odd', 'Accepted')?.message, /one resource with two amounts/);
});

test('with limits to divide, a namespace beyond its share of them loses pods to one that waits', async (t) => {
  const on = await ArbitratedCluster.start();
  t.teardown(() => on.stop());
  on.addNode('node1', { cpu: '3' });
  on.addNamespaces('first', 'second');
  // By requests each deserves half, and the pod that waits is beyond it. By limits the first uses more of the cluster.
  on.addPod('first', 'old', { cpu: '1' }, { limits: { cpu: '3' }, startedAt: -20 });
  on.addPod('first', 'young', { cpu: '1' }, { limits: { cpu: '3' }, startedAt: -10 });
  on.addPod('second', 'own', { cpu: '1' }, { limits: { cpu: '1' }, startedAt: -20 });
  on.addPod('second', 'waits', { cpu: '800m' }, { limits: { cpu: '1' }, node: null });
  await on.arbitrate('on', { graceMs: 0 });
  await on.resolvePending();
  t.same([on.evictions(), on.statusOf('first').deserved], [[], { cpu: '1500m' }]);
  await on.end();
  await on.arbitrate('on', { graceMs: 0 }, [], 200);
  await eventually(() => on.evictions().length > 0, 'the eviction');
  t.same(on.evictions(), ['young']);
  t.match(on.statusOf('second').deserved, { cpu: '1800m', 'limits.cpu': '2' });
});
