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
import { NodeShapes } from '../../src/cluster/node-shape.js';
import { viewPod } from '../../src/cluster/pod-view.js';
import { filterResult, nodeNames, printFilterResult } from '../../src/scheduler/results.js';
import { cases } from '../cases.js';

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

test('an affinity without readable terms matches no node, like an affinity without terms', (t) => {
  const affinity = (nodeSelectorTerms: unknown) =>
    readPod({
      spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
    });
  t.same(viewPod(affinity([])).demand.selector.terms, []);
  t.same(viewPod(affinity([7])).demand.selector.terms, [{ labels: [], fields: [] }]);
  t.equal(viewPod(affinity('x')).demand.selector.terms, null);
  t.end();
});

test('the readers accept any JSON without an exception', (t) => {
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
        read(Buffer.from(JSON.stringify(value)));
      } catch (error) {
        if (!(error instanceof BadArguments)) throw error;
      }
    }
  });
  t.doesNotThrow(() => fc.assert(check, { numRuns: cases(200, 3_000) }));
  t.end();
});

test('the extender reads and returns whole nodes exactly as JSON.parse would, whatever they contain', (t) => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\\"]}', '{"a":[', 'name', ','));
  const value = fc.oneof(fc.jsonValue(), text);
  const node = fc
    .record({ name: fc.option(text, { nil: undefined }), labels: fc.dictionary(text, text), rest: value })
    .chain(({ name, labels, rest }) =>
      fc.constantFrom(
        { metadata: { name, labels }, spec: rest },
        { status: rest, metadata: { labels, name, items: rest } },
        { metadata: rest },
        { spec: { metadata: { name: 'not this' } } },
      ),
    );
  const body = fc.record({
    key: fc.constantFrom('Nodes', 'nodes', 'NODES'),
    items: fc.constantFrom('items', 'Items'),
    nodes: fc.array(node, { maxLength: 5 }),
    other: value,
    space: fc.constantFrom(0, 1, '\t'),
  });
  const check = fc.property(body, ({ key, items, nodes, other, space }) => {
    const document = { metadata: other, Pod: { metadata: { name: 'p' } }, [key]: { metadata: other, [items]: nodes } };
    const given = readExtenderArguments(Buffer.from(JSON.stringify(document, null, space)));
    const plain = JSON.parse(JSON.stringify(nodes)) as unknown[];
    t.same(nodeNames(given), plain.map(nameOf));
    const fits = plain.map(nameOf).filter((_, at) => at % 2 === 0);
    const answer = JSON.parse(
      [printFilterResult(filterResult(given, fits, { x: 'no' }, {}))].flat().join(''),
    ) as unknown;
    t.same(answer, {
      Nodes: {
        metadata: JSON.parse(JSON.stringify(other)) as unknown,
        [items]: plain.filter((entry) => fits.includes(nameOf(entry))),
      },
      NodeNames: null,
      FailedNodes: { x: 'no' },
      FailedAndUnresolvableNodes: {},
      Error: '',
    });
  });
  t.doesNotThrow(() => fc.assert(check, { numRuns: cases(100, 1_000) }));
  t.end();
});

test('the extender refuses bodies whose parsing takes long or much memory before it parses them', (t) => {
  const [deep, large] = ['['.repeat(20 << 20), 'x'.repeat(7 << 20)];
  for (const body of [deep, `{"Pod":${deep}`, `{"Pod":{},"Nodes":${deep}`, `{"other":${deep}`]) {
    t.throws(() => readExtenderArguments(Buffer.from(body)), /at most 1000 open brackets/);
    t.throws(() => readPreemptionArguments(Buffer.from(body)), /at most 1000 open brackets/);
    t.throws(() => readBindingArguments(Buffer.from(body)), /a binding has more than 16384 bytes/);
  }
  t.throws(
    () => readExtenderArguments(Buffer.from(`{"Pod":{"metadata":{"name":"${large}"}}}`)),
    /more than 6291456 bytes/,
  );
  t.throws(() => readExtenderArguments(Buffer.from(`{"Pod":{},"NodeNames":["${large}"]}`)), /more than 6291456 bytes/);
  t.end();
});

test('the extender refuses a truncated or malformed body and names the position', (t) => {
  const whole = JSON.stringify({
    Pod: { metadata: { name: 'p' } },
    Nodes: { items: [{ metadata: { name: 'n"\\' } }] },
  });
  for (let length = 0; length < whole.length; length++)
    t.throws(() => readExtenderArguments(Buffer.from(whole.slice(0, length))), BadArguments, `${length} bytes`);
  const refused: [string, RegExp][] = [
    [`${whole} x`, /not JSON: expected the end of the body at byte/],
    ['[]', /not a JSON object/],
    ['{"Pod":{},"Nodes":[]}', /Nodes is not a node list/],
    ['{"Pod":{},"Nodes":{"items":{}}}', /Nodes is not a node list/],
    ['{"Pod":{},"Nodes":{"items":[7]}}', /contains an item that is not a node/],
    ['{"Pod":{},"Nodes":{"items":[{"metadata":{"name":nope}}]}}', /not JSON/],
    ['{"Pod":{},"Nodes":null,"NodeNames":null}', /neither Nodes nor NodeNames/],
    ['{"Pod":{},"NodeNames":["a",7]}', /NodeNames is not a list of names/],
    ['{"Pod":[],"NodeNames":[]}', /Pod is missing/],
    ['{"Pod":{}"NodeNames":[]}', /not JSON/],
  ];
  for (const [body, reason] of refused) t.throws(() => readExtenderArguments(Buffer.from(body)), reason, body);
  t.same(nodeNames(readExtenderArguments(Buffer.from('{"Pod":{},"Nodes":{"items":null}}'))), []);
  t.same(nodeNames(readExtenderArguments(Buffer.from(' { "pod" : {} , "nodenames" : [ "a" ] }\n'))), ['a']);
  t.same(nodeNames(readExtenderArguments(Buffer.from('{"\\u0050od":{},"NodeNames":["\\u0061"]}'))), ['a']);
  t.end();
});
