import { test } from 'tap';
import { readNode } from '../../src/kube/node.js';

const NODE = {
  metadata: {
    name: 'n',
    labels: { zone: 'a', wrong: 7 },
    annotations: { 'tencent.com/gpu-inventory': '{}', 'example.com/long': 'x'.repeat(1_000) },
  },
  spec: { taints: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }] },
  status: {
    capacity: { cpu: '4', memory: '8Gi', pods: '110' },
    allocatable: { cpu: '3500m', memory: '7Gi', pods: '30' },
    conditions: [{ type: 'Ready', status: 'True' }],
    images: [{ names: ['x'] }],
  },
};

test("a node has its labels, the project's annotations, its taints and its allocatable resources", (t) => {
  t.same(readNode(NODE), {
    name: 'n',
    labels: { zone: 'a' },
    annotations: { 'tencent.com/gpu-inventory': '{}' },
    taints: [{ key: 'nvidia.com/gpu', value: '', effect: 'NoSchedule' }],
    allocatable: new Map([
      ['cpu', 3_500],
      ['memory', 7 * 2 ** 30],
    ]),
    podSlots: 30,
    isCordoned: false,
    isReady: true,
    takesPods: true,
  });
  t.end();
});

test('a node without allocatable resources has its capacity', (t) => {
  const { allocatable: _, ...status } = NODE.status;
  t.equal(readNode({ ...NODE, status })?.allocatable.get('cpu'), 4_000, 'quota and arbitrator use the capacity too');
  t.end();
});

test('a node without a name is invalid, and a field of the wrong type counts as absent', (t) => {
  for (const object of [null, 7, [], {}, { metadata: { name: 7 } }]) t.equal(readNode(object), null);
  const wrong = {
    metadata: { name: 'n', labels: [], annotations: 'x' },
    spec: { unschedulable: 'yes', taints: { key: 'x' } },
    status: { allocatable: 'much', capacity: { cpu: {}, memory: null, pods: true }, conditions: {} },
  };
  const read = readNode(wrong);
  t.same([...(read?.allocatable ?? [])], []);
  t.match(read, { labels: {}, annotations: {}, taints: [], podSlots: 110, isCordoned: false, takesPods: false });
  t.end();
});
