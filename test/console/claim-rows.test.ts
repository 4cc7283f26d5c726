import { test } from 'tap';
import { claimFacts } from '../../src/console/claim-row.js';
import { ClusterModel } from '../../src/console/cluster-model.js';
import { nodeFacts } from '../../src/console/node-row.js';
import { podRow } from '../../src/console/pod-row.js';
import { readNode, type Node } from '../../src/kube/node.js';
import { readPod } from '../../src/kube/pod.js';
import { generator } from '../generator.js';
import { nodeObject, podObject, type PodOptions } from './cluster-objects.js';
import { claimingPod, claimObject, type ClaimOptions } from './quota-objects.js';

const node = (name: string) => nodeFacts(readNode(nodeObject(name, { gpus: 2 })) as Node);
const pod = (name: string, claim: string, options: PodOptions = {}) =>
  podRow(readPod(claimingPod(podObject(name, options), claim)));
const claim = (name: string, options: ClaimOptions = {}) => claimFacts(claimObject(name, options));

/** The changes that the console tells browsers are the same in every order of the same objects. */
function rowsInOrder(steps: readonly ((model: ClusterModel) => void)[]) {
  const model = new ClusterModel();
  for (const step of steps) step(model);
  const { nodes, pods, claims } = model.all();
  return { node: nodes[0]?.row, pods: pods.map(({ row }) => row), claim: claims[0]?.row };
}

test('a claim gives its pods slices and its node cores, in whatever order the objects come', (t) => {
  const steps = [
    (model: ClusterModel) => model.setNode('n', node('n')),
    (model: ClusterModel) => model.setPod('default-a', pod('a', 'shared', { node: 'n' })),
    (model: ClusterModel) => model.setPod('default-b', pod('b', 'shared', { node: 'n' })),
    (model: ClusterModel) =>
      model.setClaim('default', 'shared', claim('shared', { on: { node: 'n', gpu: 1 }, pods: ['a', 'b'], cores: 40 })),
  ];
  const random = generator(7);
  for (let round = 0; round < 10; round++) {
    const rows = rowsInOrder([...steps].sort(() => random() - 0.5));
    t.match(rows.claim, {
      state: 'reserved',
      pods: ['a', 'b'],
      devices: [{ node: 'n', gpu: 1, cores: 40, memoryBytes: 4 * 2 ** 30 }],
    });
    t.notOk('why' in (rows.claim ?? {}));
    t.equal(rows.pods.length, 2);
    for (const row of rows.pods) t.match(row, { claims: ['shared'], slices: [{ gpu: 1, cores: 40, claim: 'shared' }] });
    t.match(rows.node?.gpus, [{ allocatedCores: 0 }, { allocatedCores: 40 }], 'a claim of two pods counts once');
  }
  t.end();
});

test('a claim waits for the reason of the pod that uses it', (t) => {
  const model = new ClusterModel();
  model.setClaim('default', 'big', claim('big', { cores: 100 }));
  const row = () => model.all().claims[0]?.row;
  t.match(row(), { state: 'waiting', why: /^no pod uses it/, asks: { classes: ['vgpu.tencent.com'], cores: 100 } });
  model.setPod('default-a', pod('a', 'big', { unscheduled: '0/3 nodes are available: 3 cannot allocate all claims.' }));
  t.match(row(), { why: 'pod a: 0/3 nodes are available: 3 cannot allocate all claims.' });
  t.match(model.all().pods[0]?.row, { state: 'waiting', slices: [{ gpu: null, cores: 100, claim: 'big' }] });
  model.setClaim('default', 'big', claim('big', { on: { node: 'n', gpu: 0 }, cores: 100 }));
  t.match(row(), { state: 'allocated', devices: [{ gpu: null, cores: 100 }] }, 'the node is not known');
  model.setNode('n', node('n'));
  t.match(row(), { devices: [{ node: 'n', gpu: 0 }] });
  model.setClaim('default', 'big', null);
  t.same([model.all().claims, model.all().pods], [[], []], 'without its claim the pod has no GPU of ours');
  t.match(model.all().nodes[0]?.row?.gpus, [{ allocatedCores: 0 }, {}]);
  t.end();
});

test('claims of other drivers and classes are left out', (t) => {
  t.equal(claim('other', { deviceClass: 'gpu.nvidia.com', on: { node: 'n', gpu: 0 }, driver: 'gpu.nvidia.com' }), null);
  const foreign = claimObject('other', { deviceClass: 'nic.example.com' });
  t.equal(claimFacts({ ...foreign, spec: { devices: { requests: [{ exactly: { deviceClassName: 'nic' } }] } } }), null);
  t.not(claim('own', { deviceClass: 'our-own-class' }), null, 'a class of the operator, with cores');
  for (const broken of [null, {}, [], { metadata: { uid: 'a', name: 'b' }, spec: { devices: [] } }])
    t.equal(claimFacts(broken), null);
  t.end();
});

test('a claim that was deleted and made again under its name is another row', (t) => {
  const model = new ClusterModel();
  const made = claim('a');
  model.setClaim('default', 'a', made);
  model.takeChanges();
  model.setClaim('default', 'a', made === null ? null : { ...made, uid: 'second' });
  t.same(
    model.takeChanges()?.claims.map(({ key, row }) => [key, row === null]),
    [
      ['claim-default-a', true],
      ['second', false],
    ],
  );
  t.end();
});
