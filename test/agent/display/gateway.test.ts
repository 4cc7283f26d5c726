import { credentials } from '@grpc/grpc-js';
import { join } from 'node:path';
import { test } from 'tap';
import { displayServer } from '../../../src/agent/display/display-server.js';
import { float, gatewayJson } from '../../../src/agent/display/gateway-json.js';
import type { ProcessSnapshot } from '../../../src/agent/node/process-document.js';
import { Journal } from '../../../src/agent/node/journal.js';
import type { ContainerRef } from '../../../src/gpu/ledger/allocation.js';
import { systemClock } from '../../../src/host/clock.js';
import { displayProto, nodeProto } from '../../../src/rpc/proto.js';
import { callUnary } from '../../../src/rpc/unary.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';
import { allocation, gpu, GIB, node, served, slice, viewOf } from './fixture.js';

const GPUS = [gpu(0), gpu(1, { memoryBytes: 80 * GIB })];
const BUSY = slice(GPUS[0]!, { usedPercent: 100 / 3, usedMemoryBytes: 3 * GIB + 700_000, pids: [4711, 4712] });
const STATE = node({
  gpus: GPUS,
  allocations: [
    allocation('train', [BUSY]),
    allocation('app', [slice(GPUS[1]!, { allocatedCores: 100, allocatedMemoryBytes: null, memoryLimitBytes: null })]),
    allocation('nameless', [slice(GPUS[1]!)], { owners: [] }),
  ],
});

/**
 * Derived by hand from the rules of the original: fields by name, defaults left out, maps sorted, 32-bit floats, whole
 * MiB.
 */
const USAGE =
  '{"usage":{' +
  '"uid-app":{"stat":{"main":{"dev":[{"id":"00000000:05:00.0","card_idx":"1","device_mem":81920}]}},"project":"default","spec":{"main":{"gpu":1,"mem":81920}}},' +
  '"uid-train":{"stat":{"main":{"dev":[{"id":"00000000:04:00.0","card_idx":"0","gpu":33.333332,"mem":3072,"pids":[4711,4712],"device_mem":16384}]}},' +
  '"project":"default","user":"ann \\u0026 \\u003cbob\\u003e","cluster":"c1","spec":{"main":{"gpu":0.3,"mem":4096},"sidecar":{}}}' +
  '}}';

const VIEW = viewOf(() => STATE, {
  pod: (uid) =>
    uid === 'uid-train' ? { user: 'ann & <bob>', cluster: 'c1', otherContainers: ['sidecar'], quotaGroup: null } : null,
});

const PROCESS: ProcessSnapshot = {
  gpuUuid: 'GPU-1',
  gpuIndex: 1,
  pid: 4711,
  containerPid: 7,
  uid: 1000,
  user: 'ann',
  command: 'python train.py',
  usedMemoryBytes: 1024,
  usedPercent: null,
};

test('the gateway answers with the same bytes as the original', async (t) => {
  const { get } = await served(t, VIEW);
  t.match(await get('/usage'), { status: 200, type: 'application/json', text: USAGE });
  t.equal((await get('/graph')).text, '{"graph":"ROOT:1\\n"}');
  t.equal((await get('/graph?extended=1')).text, '{"graph":"ROOT:1 extended\\n"}');
  t.equal((await get('/version')).text, '{"version":"1.2.3"}');
  const { get: getEmpty } = await served(
    t,
    viewOf(() => node({ gpus: GPUS })),
  );
  t.equal((await getEmpty('/usage')).text, '{}', 'an unused node');
});

test('gRPC gives the same answers, and the node resource beside them', async (t) => {
  const socket = join(await scratchDirectory(t), 'display.sock');
  const journal = new Journal(systemClock);
  journal.note({ level: 'info', kind: 'Started', message: 'first' });
  journal.note({ level: 'info', kind: 'Freed', message: 'second' });
  const processes = async (allocation: string) => ({ atMs: 1, allocation, processes: [PROCESS], omitted: 0 });
  const server = displayServer({ socketPath: socket, view: VIEW, journal, processes });
  await server.start();
  t.teardown(() => server.stop());
  const client = new (displayProto().display.GPUDisplay)(`unix:${socket}`, credentials.createInsecure());
  const nodeClient = new (nodeProto().vgpu.Node)(`unix:${socket}`, credentials.createInsecure());
  t.teardown(async () => {
    client.close();
    nodeClient.close();
  });
  t.same(await callUnary(client, 'PrintGraph', {}, 5_000), { graph: 'ROOT:1\n' });
  t.same(await callUnary(client, 'Version', {}, 5_000), { version: '1.2.3' });
  const { usage } = await callUnary(client, 'PrintUsages', {}, 5_000);
  t.match(usage?.['uid-train'], {
    project: 'default',
    user: 'ann & <bob>',
    cluster: 'c1',
    stat: {
      main: {
        dev: [
          {
            id: '00000000:04:00.0',
            card_idx: '0',
            gpu: Math.fround(100 / 3),
            mem: 3072,
            pids: [4711, 4712],
            device_mem: 16384,
          },
        ],
      },
    },
    spec: { main: { gpu: Math.fround(0.3), mem: 4096 }, sidecar: { gpu: 0, mem: 0 } },
  });
  t.equal((await callUnary(nodeClient, 'Graph', {}, 5_000)).graph, 'ROOT:1 extended\n');
  t.same(JSON.parse((await callUnary(nodeClient, 'Show', {}, 5_000)).json), JSON.parse(JSON.stringify(STATE)));
  t.match(JSON.parse((await callUnary(nodeClient, 'Events', { after: 1 }, 5_000)).json), {
    events: [{ message: 'second', sequence: 2 }],
  });
  t.equal(
    (await callUnary(nodeClient, 'Processes', { allocation: 'a1' }, 5_000)).json,
    '{"atMs":1,"allocation":"a1","processes":[{"gpuUuid":"GPU-1","gpuIndex":1,"pid":4711,"containerPid":7,"uid":1000,"user":"ann",' +
      '"command":"python train.py","usedMemoryBytes":1024,"usedPercent":null}],"omitted":0}',
  );
});

test('containers that hold the same devices use them in turn: the usage is that of the last one', async (t) => {
  const owners = ['warm-up', 'main'].map((container) => ({ podUid: 'u', namespace: 'n', pod: 'p', container }));
  const { get } = await served(
    t,
    viewOf(() => node({ gpus: GPUS, allocations: [allocation('two', [BUSY], { owners })] })),
  );
  const { usage } = JSON.parse((await get('/usage')).text) as {
    usage: Record<string, { stat: Record<string, { dev: { pids?: number[] }[] }> }>;
  };
  t.same(usage.u?.stat['warm-up']?.dev[0]?.pids, undefined);
  t.same(usage.u?.stat.main?.dev[0]?.pids, [4711, 4712]);
});

test('texts and numbers are formatted as Go formats them', (t) => {
  t.equal(
    gatewayJson({ version: '<\u2028>"\\b\\ \b\f\n\t\u0001\ud800é' }),
    '{"version":"\\u003c\\u2028\\u003e\\"\\\\b\\\\ \\u0008\\u000c\\n\\t\\u0001\ufffdé"}',
  );
  t.same([0.1, 1 / 3, 4096, 16_777_216, 0.30000001192092896, 1e-3].map(float), [
    '0.1',
    '0.33333334',
    '4096',
    '16777216',
    '0.3',
    '0.001',
  ]);
  t.equal(
    gatewayJson({ usage: { b: {}, a10: {}, a2: {}, 9: {}, 10: {} } }),
    '{"usage":{"10":{},"9":{},"a10":{},"a2":{},"b":{}}}',
    'keys are in the order of their bytes',
  );
  t.end();
});

test('readiness lists the pending conditions until none remains', async (t) => {
  let waiting = ['not registered with the kubelet'];
  const { get } = await served(
    t,
    viewOf(() => STATE, { notReady: () => waiting }),
  );
  t.equal((await get('/healthz')).status, 200);
  t.match(await get('/readyz'), { status: 503, text: 'not registered with the kubelet\n' });
  waiting = [];
  t.equal((await get('/readyz')).status, 200);
});

test("the events of an allocation are those of its container, not another pod's that had the same id before", async (t) => {
  const clock = new ManualClock(1_000);
  const journal = new Journal(clock);
  const train = allocation('train', [BUSY], { allocatedAtMs: 3_000 });
  const other = { podUid: 'uid-other', namespace: 'team-b', pod: 'other', container: 'main' };
  const note = (message: string, owner?: ContainerRef) =>
    journal.note({
      level: 'info',
      kind: 'Freed',
      message,
      allocation: train.id,
      ...(owner === undefined ? {} : { owner }),
    });
  note('team-b/claim: its GPUs are released');
  clock.advance(3_000);
  note('team-b/other/main: its GPUs are released', other);
  note('30 cores of GPU 0', train.owners[0]);
  note('the container was corrected');
  const { get } = await served(
    t,
    viewOf(() => node({ gpus: GPUS, allocations: [train] })),
    { journal },
  );
  const { events } = JSON.parse((await get(`/api/allocations/${train.id}`)).text) as { events: { message: string }[] };
  t.same(
    events.map(({ message }) => message),
    ['30 cores of GPU 0', 'the container was corrected'],
  );
});

test('the gateway is read-only and answers 404 for unknown paths', async (t) => {
  const { get } = await served(t, VIEW);
  for (const method of ['POST', 'PUT', 'DELETE']) t.equal((await get('/graph', { method })).status, 405);
  t.match(await get('/graph', { method: 'HEAD' }), { status: 200, text: '' });
  for (const path of ['/nothing', '/page/../package.json', '/page/%2e%2e/package.json', '/api/allocations/none'])
    t.equal((await get(path)).status, 404, path);
});

test('a failing view fails its own request only, and the caller learns no details', async (t) => {
  const { get } = await served(
    t,
    viewOf(() => STATE, {
      graph: () => {
        throw new Error('secret detail');
      },
    }),
  );
  const { status, text } = await get('/graph');
  t.equal(status, 500);
  t.notMatch(text, /secret/);
  t.equal((await get('/version')).status, 200);
});
