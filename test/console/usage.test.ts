import { test } from 'tap';
import type { UseRecord } from '../../src/agent/node/use-record.js';
import { hoursOfPrometheus } from '../../src/console/prometheus-hours.js';
import type { UsageAnswer } from '../../src/console/usage.js';
import { node, served, viewOf } from '../agent/display/fixture.js';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';
import { listening } from './prometheus-server.js';

const FROM_MS = 1_800_000_000_000;

/** What an agent keeps: ended pods of three namespaces, one of them in a quota group. */
function keptUse(): Pick<UseRecord, 'hours' | 'minutes'> {
  const had = (namespace: string, pod: string, allocatedSeconds: number, quotaGroup?: string) => ({
    ...{ namespace, pod, podUid: pod, container: 'main', gpus: [0] },
    ...{ allocatedSeconds, usedSeconds: allocatedSeconds / 4, throttledSeconds: 0 },
    ...(quotaGroup === undefined ? {} : { quotaGroup }),
  });
  const containers = [
    had('research', 'a', 36_000, 'science'),
    had('research', '=b', 3_600),
    had('vision', 'c', 1_800, 'science'),
    had('ads', 'd', 7_200),
  ];
  return { hours: async () => ({ fromMs: FROM_MS, containers }), minutes: () => [] };
}

async function usageOf(console: RunningConsole, user: string, by: string, range = '24h') {
  const answer = await console.get(`/api/usage?by=${by}&range=${range}`, user);
  return answer.status === 200 ? ((await answer.json()) as UsageAnswer) : answer.status;
}

test('readers see the GPU-hours of the namespaces whose pods they may list, also of ended pods', async (t) => {
  const agent = await served(
    t,
    viewOf(() => node({ gpus: [] })),
    { use: keptUse() },
  );
  const console = await runningConsole(t, (server) => {
    for (const name of ['gpu-node-1', 'gpu-node-2']) server.seed('nodes', nodeObject(name, { gpus: 1 }));
    server.seed('pods', agentObject('gpu-node-1'));
    server.seed('pods', podObject('now', { namespace: 'research', node: 'gpu-node-1', gpus: [0] }));
    server.reach = () => agent.server.port;
  });
  const row = (name: string, hours: number, pods: number) => ({
    ...{
      name,
      allocatedGpuHours: hours,
      usedGpuHours: Math.round(hours * 25) / 100,
      usedPart: 0.25,
      pods,
      gpus: ['gpu-node-1:0'],
    },
  });
  t.match(await usageOf(console, 'operator', 'namespace'), {
    ...{ ok: true, source: 'agents', keeps: '35 days', fromMs: FROM_MS, more: 0, silent: ['gpu-node-2'] },
    rows: [row('research', 11, 2), row('ads', 2, 1), row('vision', 0.5, 1)],
  });
  t.match(await usageOf(console, 'operator', 'group'), { rows: [row('science', 10.5, 2), row('(no group)', 3, 2)] });
  t.match(await usageOf(console, 'operator', 'node', '7d'), { rows: [row('gpu-node-1', 13.5, 4)] });
  t.match(
    await usageOf(console, 'researcher', 'pod'),
    { rows: [row('research/a', 10, 1), row('research/=b', 1, 1), row('vision/c', 0.5, 1)] },
    'vision has no pod any more',
  );
  t.match(await usageOf(console, 'researcher', 'node'), { ok: false, reason: 'you may not list nodes' });
  t.match(await usageOf(console, 'technician', 'namespace'), { ok: true, rows: [] }, 'pods nowhere');
  t.equal(await usageOf(console, 'stranger', 'namespace'), 403);
  for (const wrong of ['by=pod&range=10y', 'by=owner&range=24h', 'range=24h'])
    t.equal((await console.get(`/api/usage?${wrong}`)).status, 404, wrong);
  const table = await console.get('/api/usage?by=pod&range=24h&format=csv', 'lead');
  t.match(table.headers.get('content-type'), /^text\/csv/);
  t.equal(
    await table.text(),
    'POD,ALLOCATED,USED,USE,PODS,GPUS\r\nresearch/a,10,2.5,25 %,1,gpu-node-1:0\r\nresearch/=b,1,0.25,25 %,1,gpu-node-1:0\r\n',
  );
});

test('with Prometheus the console asks it alone, for the namespaces of the reader', async (t) => {
  const asked: string[] = [];
  const url = await listening(t, (_request, response, at) => {
    if (at.pathname.endsWith('/runtimeinfo'))
      return void response.end('{"status":"success","data":{"storageRetention":"15d"}}');
    const query = at.searchParams.get('query') ?? '';
    asked.push(query);
    const value = query.includes('timestamp') ? String(Date.now() / 1_000 - 7_200) : '3';
    const result = [{ metric: { namespace: 'vision' }, value: [1, value] }];
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result } }));
  });
  const console = await runningConsole(
    t,
    (server) => server.seed('pods', podObject('now', { namespace: 'research', node: 'gpu-node-1', gpus: [0] })),
    { prometheus: { url, caFile: null, tokenFile: null } },
  );
  t.match(await usageOf(console, 'researcher', 'namespace', '30d'), {
    ...{ ok: true, source: 'Prometheus', keeps: '15d' },
    rows: [{ name: 'vision', allocatedGpuHours: 3, usedGpuHours: 3, usedPart: 1, pods: 3 }],
  });
  const [first = '', ...others] = asked;
  t.match(first, /max by \(namespace\)/, 'which namespaces there were');
  t.equal(others.filter((query) => query.includes('{namespace=~"research|vision"}')).length, 3);
  t.match(await usageOf(console, 'researcher', 'node'), { ok: false });
});

test('a Prometheus that refuses a query is told in its words', async (t) => {
  const prometheus = {
    instant: async () => ({ ok: false as const, reason: 'Prometheus refuses the query: too long' }),
  };
  t.match(await hoursOfPrometheus(prometheus, { by: 'pod', forMs: 86_400_000, namespaces: null }, Date.now()), {
    ok: false,
    reason: 'Prometheus refuses the query: too long',
  });
});
