import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { decodeLimits } from '../../../src/abi/limits-file.js';
import type { KubeObject } from '../../harness/api-server/kube-object.js';
import { eventually } from '../../harness/eventually.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode, type DraNode } from './dra-node.js';

const MIB = 2 ** 20;

/** Share, memory in MiB and soft limit of the only slice. */
async function limits(node: DraNode): Promise<string> {
  const base = node.node.config.virtualManagerPath;
  const [id = ''] = (await readdir(base)).filter((name) => /^[0-9a-f]{16}$/.test(name));
  const decoded = decodeLimits(await readFile(join(base, id, 'vgpu.limits')));
  if (!decoded.ok) return decoded.reason;
  return decoded.limits.devices
    .map(({ share, memoryBytes, softLimit }) => `${share}/${(memoryBytes ?? 0) / MIB}/${softLimit ?? 'hard'}`)
    .join();
}

const become = (node: DraNode, wanted: string): Promise<unknown> =>
  eventually(async () => (await limits(node)) === wanted, `the limits to be ${wanted}`);

function seedPod(node: DraNode, name: string, claim: string, annotations: Readonly<Record<string, string>> = {}): void {
  node.cluster.server.seed('pods', {
    metadata: { name, namespace: 'team', uid: name, annotations },
    spec: {
      nodeName: NODE_NAME,
      resourceClaims: [{ name: 'g', resourceClaimName: claim }],
      containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
    },
    status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
  });
}

function annotate(
  node: DraNode,
  resource: 'pods' | 'resourceclaims',
  name: string,
  annotations: Readonly<Record<string, string>>,
): void {
  node.cluster.server.edit(resource, 'team', name, (object: KubeObject) => ({
    ...object,
    metadata: { ...object.metadata, annotations },
  }));
}

test('of pods and claim that share a slice the lowest request counts, and more is not given', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('shared', { cores: 40, memory: '8Gi', pods: ['one', 'two'] });
  seedPod(node, 'one', 'shared', { 'tencent.com/vcuda-share-limit': '30' });
  seedPod(node, 'two', 'shared');
  t.type(await node.given('shared'), Array);
  await become(node, '30/8192/hard');
  annotate(node, 'resourceclaims', 'shared', {
    'tencent.com/vcuda-share-limit': '20',
    'tencent.com/vcuda-memory-limit': 'main=2Gi',
  });
  await become(node, '20/2048/hard');
  annotate(node, 'pods', 'two', { 'tencent.com/vcuda-share-limit': '10', 'tencent.com/vcuda-core-limit': '60' });
  await become(node, '10/2048/60');
  annotate(node, 'resourceclaims', 'shared', { 'tencent.com/vcuda-share-limit': '99' });
  await become(node, '10/8192/60');
  node.cluster.server.remove('pods', 'team', 'two');
  await become(node, '30/8192/hard');
});

test('a pod that joins a prepared claim counts from then on, and until it ends', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('shared', { cores: 40, pods: ['one'] });
  seedPod(node, 'one', 'shared', { 'tencent.com/vcuda-share-limit': '30' });
  t.type(await node.given('shared'), Array);
  await become(node, '30/4096/hard');
  // The kubelet does not ask again for a claim that is prepared.
  seedPod(node, 'late', 'shared', { 'tencent.com/vcuda-share-limit': '20' });
  await become(node, '20/4096/hard');
  const pods = () =>
    [...node.agent.allocator.state.units.values()].flatMap((unit) => unit.consumers.map(({ pod }) => pod));
  t.same(pods(), ['one', 'late']);
  node.cluster.server.remove('pods', 'team', 'one');
  await eventually(() => pods().join() === 'late', 'the pod that ended to be forgotten');
  node.cluster.server.remove('pods', 'team', 'late');
  await eventually(() => pods().length === 0, 'no pod to use the claim');
  t.equal(node.booked().join(), '40/16', 'until the kubelet releases the claim');
});

test('a change of limits through the claim is an event of each of its pods, and so is a refusal', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('shared', { cores: 40, pods: ['one', 'two'] });
  for (const name of ['one', 'two']) seedPod(node, name, 'shared');
  t.type(await node.given('shared'), Array);
  const podsTold = (message: RegExp): string =>
    node.cluster.server
      .all('events')
      .filter((event) => message.test(String(event.message)))
      .map(({ involvedObject }) => (involvedObject as { readonly name: string }).name)
      .sort()
      .join();
  annotate(node, 'resourceclaims', 'shared', { 'tencent.com/vcuda-share-limit': '20' });
  await eventually(() => podsTold(/^main: .*share 20/) === 'one,two', 'the events of the change');
  annotate(node, 'resourceclaims', 'shared', { 'tencent.com/vcuda-share-limit': 'half' });
  await eventually(
    () => podsTold(/vcuda-share-limit: "half" is not a number of cores/) === 'one,two',
    'the events of the refusal',
  );
});

test('a claim from a template follows its pod alone and is not watched', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('made', { cores: 40, pods: ['one'] });
  node.cluster.server.edit('resourceclaims', 'team', 'made', (object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { 'tencent.com/vcuda-share-limit': '10' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'one', uid: 'one', controller: true }],
    },
  }));
  seedPod(node, 'one', 'made', { 'tencent.com/vcuda-share-limit': '30' });
  t.type(await node.given('made'), Array);
  await become(node, '30/4096/hard');
  t.same(node.cluster.server.watches('resourceclaims'), []);
  t.equal(
    node.cluster.server.requests.filter(({ resource }) => resource === 'resourceclaims').length,
    1,
    'the claim is read once, to prepare it',
  );
});

test('watches of claims end with their claims', async (t) => {
  const node = await startedDraNode(t);
  for (const name of ['a', 'b']) {
    node.allocate(name, { cores: 10, pods: ['one'] });
    t.type(await node.given(name), Array);
  }
  await eventually(() => node.cluster.server.watches('resourceclaims').length === 2, 'both watches');
  await node.unprepare('a');
  await eventually(() => node.cluster.server.watches('resourceclaims').length === 1, 'the watch of the claim to end');
});
