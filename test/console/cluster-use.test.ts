import { test } from 'tap';
import { ClusterModel } from '../../src/console/cluster-model.js';
import { ClusterUse } from '../../src/console/cluster-use.js';
import { useOf } from '../../src/console/node-use.js';
import { nodeFacts } from '../../src/console/node-row.js';
import { podRow } from '../../src/console/pod-row.js';
import type { AgentPod } from '../../src/kube/agent-pods.js';
import { readNode } from '../../src/kube/node.js';
import { readPod } from '../../src/kube/pod.js';
import { ManualClock } from '../manual-clock.js';
import { nodeObject, podObject } from './cluster-objects.js';

const USED_MS = 1_800_000_030_000;
const DOCUMENT = {
  gpus: [
    { index: 0, usedPercent: 41.6 },
    { index: 1, usedPercent: null },
  ],
  allocations: [
    {
      ...{ phase: 'started', owners: [{ podUid: 'default-bert' }] },
      slices: [
        { usedPercent: 40.2, lastUsedMs: USED_MS },
        { usedPercent: 0, lastUsedMs: null },
      ],
    },
    { phase: 'started', owners: [{ podUid: 'default-idle' }], slices: [{ usedPercent: 0, lastUsedMs: null }] },
    { phase: 'allocated', owners: [{ podUid: 'default-new' }], slices: [{ usedPercent: 0 }] },
  ],
};

function model(): ClusterModel {
  const rows = new ClusterModel();
  const node = readNode(nodeObject('node-1', { gpus: 2 }));
  rows.setNode('node-1', node === null ? null : nodeFacts(node));
  for (const name of ['bert', 'idle']) {
    const pod = readPod(podObject(name, { node: 'node-1', gpus: [0] }));
    rows.setPod(pod.uid, podRow(pod));
  }
  rows.takeChanges();
  return rows;
}

test('rows of nodes and pods have the use that the agent of their node tells', (t) => {
  const rows = model();
  rows.setUse('node-1', useOf(DOCUMENT));
  const changes = rows.takeChanges();
  t.match(changes?.nodes, [{ row: { gpus: [{ usedPercent: 42 }, { usedPercent: undefined }] } }]);
  t.match(
    changes?.pods.map(({ row }) => [row?.name, row?.usedPercent, row?.lastUsedMs]).sort(),
    [
      ['bert', 40, 1_800_000_000_000],
      ['idle', 0, null],
    ],
    'the last use is told to the minute',
  );
  rows.setUse('node-1', useOf(DOCUMENT));
  t.equal(rows.takeChanges(), null, 'the same use changes nothing');
  rows.setUse('node-1', null);
  t.equal(rows.takeChanges()?.pods[0]?.row?.usedPercent, undefined, 'old figures go with their agent');
  t.end();
});

test('agents are asked only while somebody looks, and each at most every 15 seconds', async (t) => {
  const rows = model();
  const agent = { node: 'node-1', namespace: 'kube-system', name: 'agent', isReady: true, problem: '' } as AgentPod;
  rows.setAgent(agent);
  const clock = new ManualClock(1_000_000);
  let [asked, isWatched] = [0, false];
  const use = new ClusterUse({
    ...{ model: rows, clock, isWatched: () => isWatched },
    reader: {
      read: async () => {
        asked += 1;
        return { ok: true, body: DOCUMENT };
      },
    },
  });
  use.start();
  t.teardown(() => use.stop());
  clock.advance(60_000);
  t.equal(asked, 0);
  isWatched = true;
  clock.advance(31_000);
  t.equal(asked, 3);
  await new Promise(setImmediate);
  t.match(rows.pod('default-bert'), { usedPercent: 40 });
});
