import { test } from 'tap';
import { ClusterModel, TABLE_NAMES, type Changes, type Keyed } from '../../src/console/cluster-model.js';
import { ClusterWatch } from '../../src/console/cluster-watch.js';
import { nodeFacts } from '../../src/console/node-row.js';
import { podRow } from '../../src/console/pod-row.js';
import { sees, visible, type Scope } from '../../src/console/scope.js';
import { readAgentPod, type AgentPod } from '../../src/kube/agent-pods.js';
import { readNode, type Node } from '../../src/kube/node.js';
import { readPod } from '../../src/kube/pod.js';
import type { WatchableApi } from '../../src/kube/watchable-api.js';
import { generator } from '../generator.js';
import { ManualClock } from '../manual-clock.js';
import { agentObject, nodeObject, podObject, type NodeOptions, type PodOptions } from './cluster-objects.js';

const facts = (name: string, options: NodeOptions = {}) => nodeFacts(readNode(nodeObject(name, options)) as Node);
const row = (name: string, options: PodOptions = {}) => podRow(readPod(podObject(name, options)));

const NAMESPACES = ['a', 'b', 'c'];
const rowsOf = (changes: Changes): readonly Keyed<unknown>[] =>
  TABLE_NAMES.flatMap((table) => (changes[table] as readonly Keyed<unknown>[]).map((keyed) => ({ ...keyed, table })));

test('changes lead a reader from any state to all rows, whatever happens in the cluster', (t) => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = generator(seed);
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    const model = new ClusterModel();
    const known = new Map<string, unknown>();
    const take = (changes: Changes | null): void => {
      for (const table of TABLE_NAMES)
        for (const { key, row } of changes?.[table] ?? [])
          if (row === null) known.delete(`${table}/${key}`);
          else known.set(`${table}/${key}`, row);
    };
    for (let step = 0; step < 80; step++) {
      const node = `n${Math.floor(random() * 4)}`;
      const pod = `p${Math.floor(random() * 12)}`;
      const namespace = NAMESPACES[pod.length % 2] ?? 'a';
      const uid = `${namespace}-${pod}`;
      if (random() < 0.2) model.setNode(node, random() < 0.3 ? null : facts(node, { gpus: 2 }));
      else if (random() < 0.25) model.setPod(uid, null);
      else
        model.setPod(
          uid,
          row(pod, {
            namespace,
            cores: pick([10, 50, 100]),
            ...(random() < 0.7 ? { node, gpus: [pick([0, 1, 7])] } : {}),
          }),
        );
      if (random() < 0.4) take(model.takeChanges());
    }
    take(model.takeChanges());
    t.equal(model.takeChanges(), null);
    const all = new Map(
      TABLE_NAMES.flatMap((table) =>
        (model.all()[table] as readonly Keyed<unknown>[]).map(({ key, row }) => [`${table}/${key}`, row] as const),
      ),
    );
    t.strictSame([...known].sort(), [...all].sort(), `seed ${seed}`);
    for (const { row: node } of model.all().nodes)
      for (const gpu of node?.gpus ?? [])
        t.ok(
          gpu.allocatedCores >= 0 && gpu.allocatedCores <= 100 && gpu.allocatedMemoryBytes >= 0,
          'no GPU gives more than it has',
        );
    const scope: Scope = { tables: new Map([['pods', new Set([pick(NAMESPACES)])]]) };
    t.ok(rowsOf(visible(scope, model.all())).every(({ namespace }) => sees(scope, 'pods', namespace)));
  }
  t.end();
});

test('a GPU is given as far as the ledger of its agent or the annotations of pods say, whichever is more', (t) => {
  const model = new ClusterModel();
  model.setNode('n', facts('n', { gpus: 2 }));
  model.setPod('a', row('a', { node: 'n', gpus: [1], cores: 70, blocks: 4 }));
  const [, second] = model.all().nodes[0]?.row?.gpus ?? [];
  t.match(second, { index: 1, allocatedCores: 70, allocatedMemoryBytes: 2 ** 30 });
  t.end();
});

test('a container with parts of several GPUs has a slice of each', (t) => {
  const shown = (cores: number, options: PodOptions = {}) => {
    const object = podObject('p', { cores, blocks: 32, ...options });
    const annotations = { ...object.metadata.annotations, 'tencent.com/vcuda-gpus': '2' };
    return podRow(readPod({ ...object, metadata: { ...object.metadata, annotations } }))?.slices;
  };
  const half = { cores: 50, memoryBytes: 4 * 2 ** 30 };
  t.match(shown(100, { node: 'n', gpus: [0, 3] }), [
    { gpu: 0, ...half },
    { gpu: 3, ...half },
  ]);
  t.match(shown(100), [
    { gpu: null, ...half },
    { gpu: null, ...half },
  ]);
  t.match(shown(200, { node: 'n', gpus: [0, 1] }), [{ cores: 100 }, { cores: 100 }], 'two whole GPUs');
  t.end();
});

test('a pod says why it does not run', (t) => {
  t.match(row('a', { unscheduled: '0/3 nodes are available' }), { state: 'waiting', why: '0/3 nodes are available' });
  t.match(row('a'), { state: 'waiting', why: 'the scheduler has not tried it yet' });
  const refused = {
    node: 'n',
    phase: 'Failed',
    reason: 'UnexpectedAdmissionError',
    message: 'no GPU has 30 cores free',
  };
  t.match(row('a', refused), { state: 'refused', why: 'no GPU has 30 cores free' });
  t.equal(row('a', { node: 'n', phase: 'Succeeded' }), null);
  t.equal(row('a', { node: 'n', phase: 'Failed', reason: 'Error' }), null);
  t.equal(row('a', { cores: 0 }), null);
  t.end();
});

test('an inventory that cannot be read is a problem of its node, not of the console', (t) => {
  for (const inventory of ['', '{', '[]', '{"version":9}', '{"version":1,"cards":[{}]}', '\u0000'.repeat(100)])
    t.match(facts('n', { inventory, gpus: 2 }), {
      problem: /^its inventory annotation cannot be read/,
      gpus: [{}, {}],
    });
  t.end();
});

test('a request for more GPUs than any node has is one line', (t) => {
  t.equal(row('a', { cores: 100_000_000, blocks: 1 })?.slices.length, 1);
  t.equal(row('a', { cores: 800, blocks: 16 })?.slices.length, 8);
  t.end();
});

test('figures of a node are late while no agent is ready on it, if agents run as pods', (t) => {
  const model = new ClusterModel();
  const late = () => model.all().nodes.map(({ row }) => row?.late ?? null);
  const agent = (node: string, since: string | null = null) => readAgentPod(agentObject(node, since)) as AgentPod;
  for (const name of ['a', 'b']) model.setNode(name, facts(name));
  model.setNode('original', { ...(facts('original') as NonNullable<ReturnType<typeof facts>>), inventory: null });
  t.same(late(), [null, null, null], 'an agent outside of a pod is unknown to the console');
  model.setAgent(agent('a'));
  t.same(
    late(),
    [null, { why: 'no agent runs on it' }, null],
    'an agent without an inventory has none that could be old',
  );
  model.setAgent(agent('b', '2026-11-22T22:14:03Z'));
  const lost = { why: 'its agent is not ready: not ready', sinceMs: Date.parse('2026-11-22T22:14:03Z') };
  t.same(late(), [null, lost, null]);
  model.setAgent({ ...agent('b'), name: 'next' });
  t.equal(model.agentOf('b')?.name, 'next', 'of two agents the ready one counts');
  t.same(late(), [null, null, null]);
  model.setAgent({ ...agent('b'), name: 'next' }, true);
  model.setAgent(agent('b'), true);
  model.setAgent(agent('a'), true);
  t.same(late(), [null, null, null]);
  t.end();
});

test('a collection is late after ten seconds without a connection', (t) => {
  let silentMs = 0;
  const informer = { synced: true, onChange: () => undefined, start: () => undefined, stop: () => undefined };
  const api = { informer: () => Object.defineProperty({ ...informer }, 'silentMs', { get: () => silentMs }) };
  const watch = new ClusterWatch(api as unknown as WatchableApi, new ManualClock(), new ClusterModel(), 'kube-system');
  t.same(watch.late, {});
  silentMs = 9_999;
  t.same(watch.late, {});
  silentMs = 10_000;
  t.match(watch.late, { nodes: 10_000, pods: 10_000 });
  t.end();
});
