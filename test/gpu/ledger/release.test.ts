import { test } from 'tap';
import { allocationId, memoryIdsOf } from '../../../src/gpu/ledger/allocation.js';
import { reconcile } from '../../../src/gpu/ledger/release.js';
import { GRACE_MS, KubeletModel, nodeOf } from './kubelet-model.js';

const both = ['core', 'memory'] as const;
const request = (cores: number, memoryBlocks: number, order: readonly ('core' | 'memory')[] = both) => ({
  cores,
  memoryBlocks,
  order,
  failAfter: 2,
  knowsPods: true,
});

function running(model: KubeletModel, cores: number, memoryBlocks: number): void {
  if (!model.admit(request(cores, memoryBlocks))) throw new Error('refused');
  for (const pod of model.pods.values()) model.start(pod);
}

test('the ledger does not refuse a first memory request because of cores that only an ended pod holds', (t) => {
  const model = new KubeletModel(nodeOf(1, 16));
  running(model, 100, 0);
  for (const pod of [...model.pods.values()]) model.end(pod);
  t.ok(model.admit(request(30, 4, ['memory', 'core'])));
  t.end();
});

test('the ledger frees the allocations of an ended pod at once, even if the kubelet still lists them', (t) => {
  const model = new KubeletModel(nodeOf(1, 16));
  running(model, 30, 4);
  const [pod] = [...model.pods.values()];
  const heldIds = new Set([...(pod?.coreIds ?? []), ...(pod?.memoryIds ?? [])]);
  const evidence = { heldIds, endedPods: new Set([pod?.uid ?? '']), now: model.now, graceMs: GRACE_MS };
  t.equal(reconcile(model.state, evidence).freed.length, 1);
  t.equal(reconcile(model.state, { ...evidence, endedPods: new Set() }).freed.length, 0);
  t.end();
});

test('an allocation that the kubelet does not list is kept for the grace period, which starts anew when it is listed again', (t) => {
  const model = new KubeletModel(nodeOf(1, 16));
  running(model, 30, 4);
  const listed = new Map(model.pods);
  model.pods.clear();
  model.reconcile(GRACE_MS - 1);
  t.equal(model.state.allocations.size, 1);
  for (const [uid, pod] of listed) model.pods.set(uid, pod);
  model.reconcile(GRACE_MS);
  model.pods.clear();
  model.reconcile(1);
  t.equal(model.state.allocations.size, 1, 'the grace period starts anew');
  model.reconcile(GRACE_MS);
  t.equal(model.state.allocations.size, 0);
  t.end();
});

test('memory of a failed pod that is offered again does not use older waiting cores instead of the latest ones', (t) => {
  const model = new KubeletModel(nodeOf(3, 16));
  const unknown = (...wanted: Parameters<typeof request>) => ({ ...request(...wanted), knowsPods: false });
  t.ok(model.admit(unknown(200, 0)));
  t.notOk(model.admit(unknown(150, 4, ['memory', 'core'])), 'the memory was matched with the two GPUs');
  t.ok(model.admit(unknown(60, 8)));
  for (const pod of model.pods.values()) {
    const held = model.state.allocations.get(allocationId(pod.coreIds));
    t.equal(held === undefined ? -1 : memoryIdsOf(held).length, pod.memoryBlocks, `${pod.cores} cores`);
  }
  t.end();
});
