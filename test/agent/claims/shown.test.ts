import { test } from 'tap';
import { NODE_INVENTORY_KEY } from '../../../src/gpu/annotations.js';
import { decodeInventory } from '../../../src/gpu/node-inventory.js';
import { eventually } from '../../harness/eventually.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode, type DraNode } from './dra-node.js';

function seedPod(node: DraNode, name: string, claim: string): void {
  node.cluster.server.seed('pods', {
    metadata: { name, namespace: 'team', uid: name },
    spec: {
      nodeName: NODE_NAME,
      resourceClaims: [{ name: 'g', resourceClaimName: claim }],
      containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
    },
    status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
  });
}

const read = async (node: DraNode, path: string): Promise<string> =>
  (await fetch(`http://127.0.0.1:${node.agent.httpPort()}${path}`)).text();

test('a claim is shown like any allocation, with its pods and its own name', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('shared', { cores: 30, pods: ['one', 'two'] });
  for (const name of ['one', 'two']) seedPod(node, name, 'shared');
  t.type(await node.given('shared'), Array);
  const { allocations, gpus } = JSON.parse(await read(node, '/api/node')) as {
    readonly allocations: readonly object[];
    readonly gpus: readonly { readonly allocatedCores: number }[];
  };
  t.match(allocations, [
    {
      phase: 'started',
      cores: 30,
      memoryBytes: 2 ** 32,
      owners: [{ pod: 'one' }, { pod: 'two' }],
      claims: [{ namespace: 'team', name: 'shared', request: 'gpu' }],
      slices: [{ share: 30, memoryLimitBytes: 2 ** 32 }],
    },
  ]);
  t.equal(gpus[0]?.allocatedCores, 30);
  t.match(await read(node, '/usage'), /"gpu":\s*0\.3/);
  const metrics = await read(node, '/metrics');
  t.match(metrics, /^vgpu_container_requested_ratio\{.*pod="two".*\} 0\.3$/m);
  t.match(
    metrics,
    /^gpu_dra_claim_info\{allocation="[0-9a-f]{16}",namespace="team",claim="shared",request="gpu"\} 1$/m,
  );
  t.match(metrics, /^gpu_dra_call_duration_seconds_count\{call="prepare",result="ok"\} 1$/m);
  t.match(metrics, /^gpu_dra_feature\{feature="shares"\} 1$/m);
});

test('the inventory shows the extender GPUs of claims as unusable, and without what claims hold', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('share', { cores: 30, memory: '4Gi' });
  t.type(await node.given('share'), Array);
  const inventory = () => {
    const annotations = node.cluster.server.read('nodes', '', NODE_NAME)?.metadata.annotations;
    const read = decodeInventory(annotations?.[NODE_INVENTORY_KEY] ?? '');
    return read.ok ? read.inventory.gpus : [];
  };
  await eventually(() => inventory()[0]?.freeCores === 70, 'the share to be missing in the inventory');
  t.match(inventory(), [
    { healthy: false, reason: 'it is allocated through resource claims', freeMemoryBytes: 12 * 2 ** 30 },
    { healthy: false, reason: 'it is allocated through resource claims', freeCores: 100 },
  ]);
});

test('a prepared, a refused and a released claim are events of the node, and the assigned GPU one of each pod', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('shared', { cores: 30, pods: ['one', 'two'] });
  for (const name of ['one', 'two']) seedPod(node, name, 'shared');
  t.type(await node.given('shared'), Array);
  t.type(await node.given('missing'), 'string');
  await node.unprepare('shared');
  const { events } = JSON.parse(await read(node, '/api/events')) as {
    readonly events: readonly { readonly kind: string; readonly message: string }[];
  };
  const claims = events.filter(({ message }) => message.startsWith('claim team/'));
  t.match(
    claims.map(({ kind, message }) => `${kind}: ${message}`),
    [
      /^Prepared: claim team\/shared: 30 of 100 cores, 4096 MiB of GPU 0$/,
      /^Refused: claim team\/missing: not found/,
      /^Freed: claim team\/shared: its GPUs are released$/,
    ],
  );
  const assigned = () =>
    node.cluster.server.all('events').filter(({ reason }) => reason === 'GPUAssigned') as unknown as readonly {
      readonly message: string;
      readonly involvedObject: { readonly name: string };
    }[];
  await eventually(() => assigned().length === 2, 'an event on each pod');
  t.same(
    assigned()
      .map(({ involvedObject }) => involvedObject.name)
      .sort(),
    ['one', 'two'],
  );
  t.match(assigned()[0]?.message, /^GPU 0 of node simulated: 30 of 100 cores, 4096 MiB, by claim team\/shared$/);
  t.match(await read(node, '/metrics'), /^vgpu_refusals_total\{code="bad-claim"\} 1$/m);
});

test('a claim that got amounts of another one is refused with an event on the pods of the holder', async (t) => {
  const node = await startedDraNode(t, 2, { claimPatience: { roomMs: 200 } });
  node.allocate('holder', { cores: 80, pods: ['one', 'two'] });
  for (const name of ['one', 'two']) seedPod(node, name, 'holder');
  node.allocate('late', { cores: 30, pods: ['three'] });
  seedPod(node, 'three', 'late');
  t.type(await node.given('holder'), Array);
  const refusal =
    /^claim team\/late asks for 30 cores.*claim team\/holder holds 80 of 100 cores and 4 GiB there and has not been released$/;
  t.match(await node.given('late'), refusal);
  const told = () =>
    node.cluster.server.all('events').filter(({ reason }) => reason === 'GPUOverlap') as unknown as readonly {
      readonly type: string;
      readonly message: string;
      readonly involvedObject: { readonly name: string };
    }[];
  await eventually(() => told().length === 2, 'an event on each pod of the holder');
  t.match(
    [...told()].sort((a, b) => a.involvedObject.name.localeCompare(b.involvedObject.name)),
    [
      { type: 'Warning', message: refusal, involvedObject: { name: 'one' } },
      { type: 'Warning', message: refusal, involvedObject: { name: 'two' } },
    ],
  );
  t.match(await read(node, '/metrics'), /^gpu_dra_overlap_total 1$/m);
});
