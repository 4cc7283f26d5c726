import { test, type Test } from 'tap';
import type { Allocation, ContainerRef } from '../../../src/gpu/ledger/allocation.js';
import { markRefusal } from '../../../src/gpu/refusal-mark.js';
import { silentLog } from '../../../src/host/log.js';
import { NodeKube } from '../../../src/agent/api-server/node-kube.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { apiServer, clientOf, NODE, podObject } from '../../kube/setting.js';

function connect(t: Test, server: ApiServer): NodeKube {
  const kube = new NodeKube({ client: clientOf(t, server.url), nodeName: NODE, clock: hastyClock, log: silentLog() });
  t.teardown(() => kube.stop());
  return kube;
}

const OWNER: ContainerRef = { podUid: 'u1', namespace: 'default', pod: 'a', container: 'main' };
const HELD: Allocation = {
  id: 'a1',
  parts: [{ gpuUuid: 'GPU-0', coreIds: ['c0'], memoryIds: ['m0'] }],
  phase: 'started',
  owners: [OWNER],
  allocatedAt: 0,
  missingSince: null,
};

test('a container start leads to annotations and an event at the API server', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const kube = connect(t, server);
  await kube.start();
  kube.notices.started(HELD, OWNER, [{ index: 2, uuid: 'GPU-2' }]);
  await eventually(
    () => server.read('pods', 'default', 'a')?.metadata.annotations?.['tencent.com/gpu-assigned'] === 'true',
  );
  const event = await eventually(() => server.all('events')[0]);
  t.match(event, { reason: 'GPUAssigned', involvedObject: { uid: 'u1' } });
});

test('a refusal in the status of a pod leads to an event and to the deletion of the pod', async (t) => {
  const server = await apiServer(t);
  const kube = connect(t, server);
  await kube.start();
  const status = {
    phase: 'Failed',
    reason: 'UnexpectedAdmissionError',
    message: `Allocate failed due to rpc error: code = Unknown desc = ${markRefusal('no room')}, which is unexpected`,
    startTime: new Date(hastyClock.now()).toISOString(),
  };
  server.seed('pods', podObject({ name: 'a', uid: 'u1', owner: { kind: 'ReplicaSet', name: 'web' }, status }));
  server.seed('pods', podObject({ name: 'naked', uid: 'u2', status }));
  await eventually(() => server.read('pods', 'default', 'a') === null && server.all('events').length === 2);
  t.ok(server.read('pods', 'default', 'naked'));
  t.same(
    server.all('events').map((event) => event.reason),
    ['GPURefused', 'GPURefused'],
  );
});

test('container starts and answers need no API server, and pending reports are sent when it is reachable', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  server.seed('nodes', { metadata: { name: NODE } });
  await server.stop();
  const kube = connect(t, server);
  kube.labels.label(new Map([['a', 'b']]));
  await kube.start();
  kube.notices.started(HELD, OWNER, [{ index: 2, uuid: 'GPU-2' }]);
  t.equal(kube.pods.pending(), null);
  await eventually(() => (kube.counts.watch.failures.get('unreachable') ?? 0) > 2);
  await server.start();
  await eventually(
    () => server.read('pods', 'default', 'a')?.metadata.annotations?.['tencent.com/predicate-gpu-idx-0'] === '2',
  );
  await eventually(() => server.read('nodes', '', NODE)?.metadata.labels?.a === 'b');
});

test('stopping does not wait for the API server, whatever requests are pending', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const kube = connect(t, server);
  await kube.start();
  await eventually(() => kube.pods.synced);
  server.freeze();
  kube.notices.started(HELD, OWNER, [{ index: 2, uuid: 'GPU-2' }]);
  kube.labels.label(new Map([['a', 'b']]));
  await eventually(() => kube.counts.writes.waiting === 2);
  await kube.stop();
  t.equal(kube.counts.writes.done, 0);

  const listing = connect(t, server);
  await listing.start();
  await listing.stop();
  t.notOk(listing.pods.synced);
});
