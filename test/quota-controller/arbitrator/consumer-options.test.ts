import { test } from 'tap';
import { eventually } from '../../harness/eventually.js';
import { ArbitratedCluster } from './arbitrated-cluster.js';

test('a policy that selects every namespace gives each a Consumer, and kube-system all that it asks for', async (t) => {
  const on = await ArbitratedCluster.start();
  t.teardown(() => on.stop());
  on.addNode('node1', { cpu: '4' });
  on.addNamespaces('kube-system', 'first', 'second');
  on.addConsumer('second', { reserved: { cpu: 1 } });
  on.addPod('kube-system', 'dns', { cpu: '3' });
  on.addPod('first', 'p', { cpu: '1' });
  on.addPod('second', 'waits', { cpu: '1' }, { node: null });
  await on.arbitrate('on', {}, [{ namespaceSelector: {}, spec: {} }]);
  for (const name of ['kube-system', 'first'])
    await eventually(() => on.server.read('consumers', '', name) !== null, `the Consumer of ${name}`);
  on.addNamespaces('third');
  await eventually(() => on.server.read('consumers', '', 'third') !== null, 'the Consumer of a new namespace');
  t.same(on.server.read('consumers', '', 'first')?.['spec'], {});
  t.same(on.server.read('consumers', '', 'second')?.['spec'], { reserved: { cpu: 1 } }, 'one that exists stays');
  await on.deserves('kube-system', { cpu: '3' });
  await on.deserves('second', { cpu: '1' });
});

/** `team` uses its two cores with pods of priority 1 and 2; a pod of priority 5 waits beyond its share. */
async function fullTeam(preemption: object): Promise<ArbitratedCluster> {
  const on = await ArbitratedCluster.start();
  on.addNode('node1', { cpu: '3' });
  on.addNamespaces('team', 'other');
  on.addConsumer('team', { hard: { cpu: 2 }, ...preemption });
  on.addPod('team', 'low', { cpu: '1' }, { priority: 1, startedAt: -20 });
  on.addPod('team', 'middle', { cpu: '1' }, { priority: 2, startedAt: -30 });
  on.addPod('other', 'lowest', { cpu: '1' }, { priority: 0, startedAt: -10 });
  on.addPod('team', 'waits', { cpu: '1' }, { priority: 5, node: null });
  await on.arbitrate('on', { graceMs: 0 });
  return on;
}

test('a waiting pod beyond the fair share takes the room of a less important pod of its own namespace only', async (t) => {
  const on = await fullTeam({ preemption: 'LowerPriority' });
  t.teardown(() => on.stop());
  await eventually(() => on.evictions().length > 0, 'the eviction');
  await on.resolvePending();
  t.same(on.evictions(), ['low']);
  await eventually(() => on.events('Reclaimed').length === 1, 'the event');
  t.match(on.events('Reclaimed')[0], {
    message: /its priority 1 is lower than 5; pod waits starts on node node1/,
  });
});

test('without the option no pod of the own namespace makes room', async (t) => {
  const on = await fullTeam({});
  t.teardown(() => on.stop());
  await on.resolvePending();
  t.same(on.evictions(), []);
});
