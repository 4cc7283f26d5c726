import fc from 'fast-check';
import { test } from 'tap';
import {
  BadArguments,
  readBindingArguments,
  readExtenderArguments,
  readPreemptionArguments,
} from '../../src/scheduler/arguments.js';
import { readPod } from '../../src/kube/pod.js';
import { nameOf, readNode } from '../../src/kube/node.js';
import { NodeShapes } from '../../src/scheduler/node-shape.js';
import { viewPod } from '../../src/scheduler/pod-view.js';

test('a field of the wrong type counts as absent', (t) => {
  const wrong = {
    metadata: { name: 7, uid: ['u'], annotations: { 'tencent.com/gpu-assigned': true } },
    spec: {
      nodeName: {},
      priority: '9',
      containers: [null, 3, { name: 1, resources: { limits: { 'tencent.com/vcuda-core': {}, cpu: null } } }],
      initContainers: 'none',
      affinity: { nodeAffinity: [] },
    },
    status: 'Running',
  };
  t.match(viewPod(readPod(wrong)), {
    uid: '',
    name: '',
    nodeName: null,
    ended: false,
    priority: 0,
    brokenRule: null,
    demand: { containers: [], init: [], cpuMilli: 0 },
  });
  t.equal(nameOf({ metadata: { name: 1 } }), '');
  t.equal(nameOf(null), '');
  t.end();
});

test('an affinity without terms that can be read matches no node, as one without terms', (t) => {
  const affinity = (nodeSelectorTerms: unknown) =>
    readPod({
      spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
    });
  t.same(viewPod(affinity([])).demand.selector.terms, []);
  t.same(viewPod(affinity([7])).demand.selector.terms, [{ labels: [], fields: [] }]);
  t.equal(viewPod(affinity('x')).demand.selector.terms, null);
  t.end();
});

test('no JSON breaks the readers', (t) => {
  const keys = fc.constantFrom(
    'metadata',
    'spec',
    'status',
    'containers',
    'resources',
    'limits',
    'affinity',
    'nodeAffinity',
    'annotations',
    'items',
    'Pod',
    'Nodes',
    'tencent.com/vcuda-core',
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue(),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(keys, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  const check = fc.property(tree, (value) => {
    viewPod(readPod(value));
    const node = readNode(value);
    if (node !== null) new NodeShapes().read(node);
    for (const read of [readExtenderArguments, readBindingArguments, readPreemptionArguments]) {
      try {
        read(JSON.stringify(value));
      } catch (error) {
        if (!(error instanceof BadArguments)) throw error;
      }
    }
  });
  t.doesNotThrow(() => fc.assert(check, { numRuns: 1000 }));
  t.end();
});
