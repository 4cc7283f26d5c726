import { test } from 'tap';
import { plainNode, pod } from './objects.js';
import { settle, start } from './scheduler.js';

// The decisions of the original's extender in the same situations; its order of nodes is the policy binpack.

test("the sequence of the original's own test gives the same nodes and GPUs", async (t) => {
  const rig = await start(
    t,
    ['testnode0', 'testnode1', 'testnode2'].map((name) => plainNode(name, 200, 8)),
    { policy: 'binpack' },
  );
  t.equal(
    await settle(
      rig,
      pod('pod-0', [
        [10, 1],
        [10, 1],
      ]),
    ),
    'testnode0: 0 | 0',
  );
  t.equal(
    await settle(
      rig,
      pod('pod-1', [
        [100, 3],
        [80, 3],
      ]),
    ),
    'testnode1: 0 | 1',
  );
  // The original's test asks for 10 blocks here, more than a node has: it left this to kube-scheduler.
  t.equal(await settle(rig, pod('pod-2', [[200, 10], null])), 'none');
  t.equal(await settle(rig, pod('pod-2', [[200, 8], null])), 'testnode2: 0,1');
  t.equal(await settle(rig, pod('pod-3', [[10, 2], null])), 'testnode0: 0');
});

test('the extender fills one node of four GPUs as the original does', async (t) => {
  const rig = await start(t, [plainNode('n', 400, 64)], { policy: 'binpack' });
  const rows: [number, number, string][] = [
    [50, 4, 'n: 0'],
    [60, 4, 'n: 1'],
    [50, 13, 'n: 2'],
    [40, 1, 'n: 1'],
    [100, 0, 'n: 3'],
    [100, 0, 'none'],
    [50, 4, 'n: 0'],
  ];
  for (const [at, [cores, blocks, expected]] of rows.entries()) {
    t.equal(await settle(rig, pod(`p${at}`, [[cores, blocks]])), expected, `${cores}/${blocks}`);
  }
});

test('the extender fills two nodes of two GPUs as the original does', async (t) => {
  const rig = await start(t, [plainNode('n0', 200, 32), plainNode('n1', 200, 32)], { policy: 'binpack' });
  const rows: [number, number, string][] = [
    [20, 2, 'n0: 0'],
    [200, 0, 'n1: 0,1'],
    [100, 0, 'n0: 1'],
    [90, 20, 'none'],
    [80, 16, 'none'],
    [80, 14, 'n0: 0'],
  ];
  for (const [at, [cores, blocks, expected]] of rows.entries()) {
    t.equal(await settle(rig, pod(`p${at}`, [[cores, blocks]])), expected, `${cores}/${blocks}`);
  }
});

test('the extender refuses 150 cores, which the original read as one GPU, and states the rule', async (t) => {
  const rig = await start(t, [plainNode('n', 200, 32)]);
  const refused = await rig.scheduler.filter(pod('p', [[150, 1]]), ['n']);
  t.same(refused.NodeNames, []);
  t.match(refused.FailedAndUnresolvableNodes.n, /150 is more than one GPU and not a multiple of 100/);
});

test('the extender refuses requests that no node agent would serve, and states the rule', async (t) => {
  const rig = await start(t, [plainNode('n', 200, 32)]);
  const rows: [readonly [number, number], RegExp][] = [
    [[50, 0], /needs tencent.com\/vcuda-memory as well/],
    [[0, 4], /without tencent.com\/vcuda-core/],
    [[101, 4], /not a multiple/],
  ];
  for (const [wanted, rule] of rows) {
    const refused = await rig.scheduler.filter(pod('p', [wanted]), ['n']);
    t.match(refused.FailedAndUnresolvableNodes.n, rule, wanted.join('/'));
    t.equal(refused.Error, '');
  }
});
