import { test } from 'tap';
import { HttpServer } from '../../src/display/http-server.js';
import type { ContainerUsage, NodeView } from '../../src/display/view.js';
import { silentLog } from '../../src/host/log.js';

const CONTAINER: ContainerUsage = {
  podUid: 'uid-1', namespace: 'default', pod: 'train', container: 'main', user: '', cluster: '', requestedCores: 30, requestedMemoryBytes: 4 * 2 ** 30,
  devices: [{ gpuIndex: 0, pciBusId: '00000000:04:00.0', memoryBytes: 16 * 2 ** 30, usedPercent: 0, usedMemoryBytes: 0, pids: [] }],
};

async function served(t: { teardown(action: () => Promise<void>): void }, changes: Partial<NodeView> = {}) {
  const view: NodeView = { nodeName: 'node1', version: '1.2.3', graph: () => 'ROOT:1\n', containers: () => [CONTAINER], notReady: () => [], ...changes };
  const server = new HttpServer('127.0.0.1', 0, view, silentLog());
  await server.start();
  t.teardown(() => server.stop());
  return async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, init);
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
}

test('graph, usage and version answer as the original gateway: proto names, defaults left out', async (t) => {
  const get = await served(t);
  t.same(JSON.parse((await get('/graph')).text), { graph: 'ROOT:1\n' });
  t.same(JSON.parse((await get('/version')).text), { version: '1.2.3' });
  t.same(JSON.parse((await get('/usage')).text), {
    usage: {
      'uid-1': {
        stat: { main: { dev: [{ id: '00000000:04:00.0', card_idx: '0', device_mem: 16_384 }] } },
        project: 'default',
        spec: { main: { gpu: 0.3, mem: 4_096 } },
      },
    },
  });
});

test('the metrics carry the original names and labels, on both paths', async (t) => {
  const get = await served(t);
  const { text, type } = await get('/metric');
  t.equal((await get('/metrics')).text, text);
  t.match(type, /^text\/plain/);
  const labels = 'pod_name="train",namespace="default",node="node1",container_name="main"';
  t.ok(text.includes(`container_request_gpu_utilization{${labels},req_of_gpu="total"} 0.3`), text);
  t.ok(text.includes(`container_request_gpu_memory{${labels},req_of_gpu_memory="total"} 4096`));
  t.ok(text.includes(`container_gpu_utilization{${labels},gpu="gpu0"} 0`));
});

test('ready only when there is nothing to wait for, and what that is is said', async (t) => {
  let waiting = ['not registered with the kubelet'];
  const get = await served(t, { notReady: () => waiting });
  t.equal((await get('/healthz')).status, 200);
  t.match(await get('/readyz'), { status: 503, text: 'not registered with the kubelet\n' });
  waiting = [];
  t.equal((await get('/readyz')).status, 200);
});

test('it is read-only, and knows what it does not have', async (t) => {
  const get = await served(t);
  t.equal((await get('/graph', { method: 'POST' })).status, 405);
  t.equal((await get('/nothing')).status, 404);
});

test('a view that fails costs its own request and nothing else', async (t) => {
  const get = await served(t, {
    graph: () => {
      throw new Error('secret detail');
    },
  });
  const { status, text } = await get('/graph');
  t.equal(status, 500);
  t.notMatch(text, /secret/);
  t.equal((await get('/version')).status, 200);
});
