import { test, type Test } from 'tap';
import { clusterShapes, type ClusterNode } from '../../src/cluster/shapes/cluster-shapes.js';
import type { ShapedPod } from '../../src/cluster/shapes/shaped-pod.js';
import { Shapes } from '../../src/console/shapes.js';
import { systemClock } from '../../src/host/clock.js';
import type { KubeApi } from '../../src/kube/client.js';
import { readNode } from '../../src/kube/node.js';
import { LEDGERS_PATH } from '../../src/kube/quota/names.js';
import { Quota, toRecord, type StoredRecord } from '../../src/quota/index.js';
import { readClusterLedger } from '../../src/quota-controller/ledger/cluster-ledger.js';
import { ledgerObject, segmentObject } from '../../src/quota-controller/store/ledger.js';
import { RecordLog } from '../../src/quota-controller/store/record-log.js';
import { recordKey } from '../../src/quota-controller/store/tail.js';
import { LoopMeter } from '../harness/loop-meter.js';
import { holdsTurns } from '../harness/turn-limit.js';

const NODES = 1_000;
const GROUP = 'team';
const PAGE = 200;

async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const meter = new LoopMeter();
  meter.start();
  return work().then(
    () => meter.stop(),
    (error: unknown) => {
      meter.stop();
      throw error;
    },
  );
}

/** An object as an API server returns it. */
function stored(object: unknown): unknown {
  const sent = object as { readonly metadata: object };
  return { ...sent, metadata: { ...sent.metadata, uid: 'ledger' } };
}

/** The ledger of one group, with all its workloads in segments, read in pages. */
function ledgerApi(count: number): KubeApi {
  const edits = new Map<string, StoredRecord>();
  const quota = new Quota({ clock: () => 0 });
  quota.onChange((change) => {
    const record = toRecord(change, null);
    edits.set(recordKey(record), record);
  });
  quota.createGroup({ name: GROUP, hard: { 'limits.cpu': 10 * count } });
  for (let at = 0; at < count; at++)
    quota.admit({
      workload: { kind: 'Job.batch', namespace: `space-${at % 50}`, name: `w${at}`, uid: `uid-${at}` },
      group: GROUP,
      podSets: [{ count: 1, limits: { cpu: 1 + (at % 40) / 10 } }],
    });
  const { log, created } = RecordLog.empty().with(edits).sealed();
  const head = { revision: count, now: 1, lives: 1 };
  const page = { group: GROUP, parent: '', token: '', head, children: new Map<string, string>(), records: log };
  const texts = [
    stored(ledgerObject(GROUP, '1', page, null)),
    ...created.map((each) => segmentObject(GROUP, log.list.series, each)),
  ].map((object) => JSON.stringify(object));
  return {
    request: async ({ path, query }) => {
      // As an answer of a server, it comes in another turn.
      await new Promise((resolve) => setImmediate(resolve));
      if (path !== LEDGERS_PATH) return { ok: true, body: { items: [] } };
      const from = Number(query?.['continue'] ?? 0);
      const items = texts.slice(from, from + PAGE).map((text) => JSON.parse(text) as unknown);
      const next = from + PAGE < texts.length ? { continue: `${from + PAGE}` } : {};
      return { ok: true, body: { items, metadata: next } };
    },
  };
}

/**
 * Tests that the shapes of so many workloads and pods are counted in short turns of the event loop: console and
 * arbitrator count them beside reviews, pages and probes.
 */
export function testShapeTurns(count: number): void {
  void test(`the shapes of ${count} workloads of a group are counted in short turns`, (t) =>
    holdsTurnsOfGroup(t, count));
  void test(`the shapes of ${count} pods on ${NODES} nodes are counted in short turns`, (t) =>
    holdsTurnsOfCluster(t, count));
}

async function holdsTurnsOfGroup(t: Test, count: number): Promise<void> {
  const api = ledgerApi(count);
  await holdsTurns(t, 'shapes of a group', () =>
    longestTurn(async () => {
      const answer = await new Shapes({ api, clock: systemClock, readLedger: readClusterLedger }).ofGroup(
        GROUP,
        () => true,
      );
      if (!answer.ok) throw new Error(answer.reason);
      t.equal(
        answer.shapes.reduce((sum, { count: alike }) => sum + alike, 0),
        count,
      );
    }),
  );
}

async function holdsTurnsOfCluster(t: Test, count: number): Promise<void> {
  const nodes = Array.from({ length: NODES }, (_, at) => {
    const node = readNode({
      metadata: { name: `node-${at}`, uid: `node-${at}` },
      status: { allocatable: { cpu: '64', memory: '256Gi', pods: '110' } },
    });
    return { ...node, inventory: null } as ClusterNode;
  });
  const pods = Array.from({ length: count }, (_, at): ShapedPod => ({
    node: at % 10 === 0 ? null : `node-${at % NODES}`,
    uses: new Map([
      ['cpu', 100 + (at % 40)],
      ['memory', 2 ** 30],
    ]),
    gpus: { requests: [], gpus: null },
    isLeaving: false,
  }));
  await holdsTurns(t, 'shapes of the cluster', () =>
    longestTurn(async () => {
      const shapes = await clusterShapes(nodes, pods, 100);
      t.equal(
        shapes.reduce((sum, { shape }) => sum + shape.count, 0),
        count,
      );
    }),
  );
}
