import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { SlicePublisher } from '../../../src/agent/claims/slice-publisher.js';
import type { PublishedDevice } from '../../../src/gpu/claims/published-device.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { openKubeClient } from '../../../src/kube/open-client.js';
import { ApiServer } from '../../harness/api-server/api-server.js';
import type { CustomSchema } from '../../harness/api-server/custom-schema.js';
import { DRA_TYPES } from '../../harness/api-server/dra-types.js';
import { kubeconfig } from '../../harness/api-server/kubeconfig.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';

// API servers that do not store shared counters: a device without its counters could be allocated twice.

const device = (name: string): PublishedDevice => ({
  ...{ name, attributes: {}, capacity: {}, shared: false, taints: [] },
});
const TAKING = { ...device('place'), consumes: { name: 'gpu', counters: { 'memory-slice-0': 1 } } };
const SETS = [{ name: 'gpu', counters: { 'memory-slice-0': 1 } }];

/** Publishes a GPU and a place of another one; returns the slices of the server, and stops with the test. */
async function publishing(t: Parameters<typeof scratchDirectory>[0], server: ApiServer) {
  const directory = await scratchDirectory(t);
  await server.start();
  server.seed('nodes', { metadata: { name: 'node' } });
  await writeFile(join(directory, 'kubeconfig'), kubeconfig({ url: server.url }, {}));
  const client = await openKubeClient(join(directory, 'kubeconfig'), systemClock);
  const publisher = new SlicePublisher({
    client,
    nodeName: 'node',
    content: ({ counters }) => ({
      devices: [device('gpu'), ...(counters ? [TAKING] : [])],
      counterSets: counters ? SETS : [],
    }),
    clock: systemClock,
    log: silentLog(),
  });
  publisher.start();
  t.teardown(async () => {
    await publisher.stop();
    client.close();
    await server.stop();
  });
  return { publisher, specs: () => server.all('resourceslices').map(({ spec }) => spec as Spec) };
}

interface Spec {
  readonly pool: { readonly resourceSliceCount: number };
  readonly devices?: readonly { readonly name: string; readonly consumesCounters?: readonly object[] }[];
  readonly sharedCounters?: readonly object[];
}

const ANY: CustomSchema = { 'x-kubernetes-preserve-unknown-fields': true };

test('a server that drops counters gets no device that needs them, at no time', async (t) => {
  const server = new ApiServer();
  const fields = ['name', 'attributes', 'capacity', 'allowMultipleAllocations', 'taints'];
  const devices = { items: { properties: Object.fromEntries(fields.map((name) => [name, ANY])) } };
  const spec = { properties: { driver: ANY, nodeName: ANY, pool: ANY, devices } };
  server.define(
    ...DRA_TYPES.map((type) =>
      type.plural === 'resourceslices' ? { ...type, schema: { properties: { spec } } } : type,
    ),
  );
  const { publisher, specs } = await publishing(t, server);
  await eventually(() => {
    const complete = specs().length === specs()[0]?.pool.resourceSliceCount;
    if (specs().some((one) => one.devices?.some(({ name }) => name === 'place'))) throw new Error('place is published');
    return complete && specs().some((one) => one.devices?.some(({ name }) => name === 'gpu'));
  }, 'the GPU without counters');
  t.equal(publisher.features.counters, false);
  t.same(
    specs().map((one) => one.devices?.map(({ name }) => name)),
    [['gpu']],
  );
});

test('a server that refuses counters in slices of their own gets the other devices', async (t) => {
  const server = new ApiServer();
  server.define(...DRA_TYPES);
  server.inject(
    { verb: 'create', resource: 'resourceslices' },
    { do: 'answer', code: 422, reason: 'Invalid', message: 'spec.sharedCounters: Forbidden' },
    1,
  );
  const { publisher, specs } = await publishing(t, server);
  await eventually(() => specs()[0]?.devices?.length === 1, 'the GPU');
  t.equal(publisher.features.counters, false);
  t.equal(publisher.errors, 0);
});

test('a server that stores counters gets them before the devices, in slices of one pool', async (t) => {
  const server = new ApiServer();
  server.define(...DRA_TYPES);
  const { publisher, specs } = await publishing(t, server);
  await eventually(() => specs().length === 2, 'both slices');
  t.match(specs(), [
    { pool: { resourceSliceCount: 2 }, sharedCounters: [{ name: 'gpu' }] },
    { devices: [{ name: 'gpu' }, { name: 'place', consumesCounters: [{ counterSet: 'gpu' }] }] },
  ]);
  t.notOk('devices' in (specs()[0] ?? {}));
  t.equal(publisher.features.counters, true);
});
