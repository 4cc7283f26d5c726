import { test, type Test } from 'tap';
import { ClaimStatus, type PreparedStatus } from '../../../src/agent/claims/claim-status.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { clientTo } from '../../quota-controller/setting.js';

const DEVICE = { pool: 'node1/vcuda', device: 'gpu-1', shareId: 'share-1' };
const FOREIGN = { driver: 'nic.example.com', pool: 'node1', device: 'nic-0', data: { mac: 'a' } };

async function setting(t: Test, devices: PreparedStatus['devices']) {
  const server = new ApiServer();
  await server.start();
  server.define({
    group: 'resource.k8s.io',
    version: 'v1',
    plural: 'resourceclaims',
    kind: 'ResourceClaim',
    namespaced: true,
    statusSubresource: true,
  });
  server.seed('resourceclaims', {
    metadata: { name: 'a', namespace: 'team', uid: 'uid-a' },
    spec: {},
    status: { reservedFor: [{ resource: 'pods', name: 'one', uid: 'one' }], devices: [FOREIGN] },
  });
  let prepared: readonly PreparedStatus[] = [
    { claim: { uid: 'uid-a', namespace: 'team', name: 'a' }, since: 1, devices },
  ];
  const client = clientTo(server.url);
  const status = new ClaimStatus({
    api: client,
    prepared: () => prepared,
    clock: systemClock,
    log: silentLog(),
    periodMs: 10,
  });
  t.teardown(async () => {
    await status.stop();
    client.close();
    await server.stop();
  });
  status.start();
  const writes = () => server.requests.filter(({ subresource }) => subresource === 'status').length;
  return {
    server,
    writes,
    become: (next: readonly PreparedStatus[]) => (prepared = next),
    present: () => prepared,
    shown: () => server.read('resourceclaims', 'team', 'a')?.status as { readonly devices: readonly object[] },
  };
}

test('a claim shows its prepared devices beside those of other drivers, and is written only if they change', async (t) => {
  const on = await setting(t, [{ ...DEVICE, data: { cores: 30, shareLimit: 30 } }]);
  await eventually(() => on.shown().devices.length === 2, 'the device to be shown');
  t.match(on.shown(), {
    reservedFor: [{ name: 'one' }],
    devices: [
      FOREIGN,
      {
        driver: 'gpu.tencent.com',
        pool: 'node1/vcuda',
        device: 'gpu-1',
        shareID: 'share-1',
        conditions: [{ type: 'Ready', status: 'True', reason: 'Prepared', lastTransitionTime: String }],
        data: { cores: 30, shareLimit: 30 },
      },
    ],
  });
  const first = on.shown().devices[1] as { readonly conditions: readonly object[] };
  on.become(on.present().map((entry) => ({ ...entry, devices: [{ ...DEVICE, data: { cores: 30, shareLimit: 20 } }] })));
  await eventually(() => JSON.stringify(on.shown()).includes('"shareLimit":20'), 'the changed limit to be shown');
  t.same((on.shown().devices[1] as typeof first).conditions, first.conditions, 'it was ready all the time');
  t.equal(on.writes(), 2);
});

test('without the right to write, one attempt is made and nothing fails', async (t) => {
  const on = await setting(t, []);
  const refused = on.server.inject({ resource: 'resourceclaims', subresource: 'status' }, { do: 'answer', code: 403 });
  on.become(on.present().map((entry) => ({ ...entry, devices: [{ ...DEVICE, data: { cores: 30 } }] })));
  await eventually(() => refused.hits >= 1, 'the first attempt');
  const reads = () => on.server.requests.length;
  const before = reads();
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(reads(), before);
});

test('a claim that was deleted and made anew is left alone', async (t) => {
  const on = await setting(t, []);
  const before = on.writes();
  on.become([
    { claim: { uid: 'uid-old', namespace: 'team', name: 'a' }, since: 1, devices: [{ ...DEVICE, data: { cores: 1 } }] },
    { claim: { uid: 'uid-gone', namespace: 'team', name: 'gone' }, since: 1, devices: [{ ...DEVICE, data: {} }] },
  ]);
  await eventually(() => on.server.requests.some(({ name }) => name === 'gone'), 'both claims to be read');
  t.same(on.shown().devices.length, 1);
  t.ok(on.writes() - before <= 1);
});
