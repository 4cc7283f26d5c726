import { test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { createEngine } from '../../src/quota/index.js';
import { readClusterLedger } from '../../src/quota-controller/ledger/cluster-ledger.js';
import { KubeStore } from '../../src/quota-controller/store/kube-store.js';
import { statusesOf } from '../../src/quota-command/replay.js';
import { topShapes } from '../../src/quota-command/top.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { clientTo } from '../quota-controller/setting.js';
import { nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';
import { serveQuota } from './quota-objects.js';

interface Told {
  readonly ok: boolean;
  readonly shapes: readonly Readonly<Record<string, unknown>>[];
  readonly workloads?: readonly Readonly<Record<string, unknown>>[];
}

const shapes = async (console: RunningConsole, query = '', user?: string): Promise<Told> =>
  (await (await console.get(`/api/shapes${query}`, user)).json()) as Told;

function seed(server: ApiServer): void {
  serveQuota(server);
  server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2, memoryGib: 32 }));
  server.seed('nodes', nodeObject('gpu-node-2', { gpus: 2, memoryGib: 32 }));
  server.seed('nodes', nodeObject('gpu-node-3', { gpus: 8, isCordoned: true }));
  for (const gpu of [0, 1])
    server.seed('pods', podObject(`half-${gpu}`, { node: 'gpu-node-1', gpus: [gpu], cores: 60, blocks: 16 }));
  server.seed('pods', podObject('late', { namespace: 'research', cores: 100, blocks: 0 }));
}

test('the shapes of the cluster: how often the requests of pods still fit where, and what blocks the next', async (t) => {
  const console = await runningConsole(t, seed);
  t.match(await shapes(console), {
    ok: true,
    shapes: [
      {
        request: 'tencent.com/vcuda-core=100',
        ...{ count: 1, fits: 2, places: 1 },
        where: [{ name: 'gpu-node-2', fits: 2 }],
        blockedBy: [{ key: 'tencent.com/vcuda-core', places: 2 }],
      },
      {
        request: 'tencent.com/vcuda-core=60 tencent.com/vcuda-memory=16',
        ...{ count: 2, fits: 2, places: 1 },
        blockedBy: [{ key: 'placement', places: 2 }],
      },
    ],
  });
});

test('the shapes of a group are those of quota top shapes', async (t) => {
  const console = await runningConsole(t, seed);
  const client = clientTo(console.server.url);
  t.teardown(() => client.close());
  const engine = await createEngine({
    store: new KubeStore({ api: client, clock: systemClock }),
    clock: () => Date.now(),
  });
  t.teardown(() => engine.close());
  const key = 'requests.nvidia.com/gpu';
  await engine.createGroup({ name: 'company', hard: { [key]: 8 } });
  await engine.createGroup({ name: 'vision', parent: 'company', hard: { [key]: 5 } });
  for (const [name, gpus] of [
    ['small', 1],
    ['large', 3],
  ] as const)
    await engine.admit({
      workload: { kind: 'Job.batch', namespace: 'research', name },
      group: 'vision',
      podSets: [{ count: 1, requests: { 'nvidia.com/gpu': gpus } }],
    });
  await engine.admit({
    workload: { kind: 'Deployment.apps', namespace: 'research', name: 'stopped' },
    group: 'vision',
    podSets: [{ count: 0, requests: { 'nvidia.com/gpu': 1 } }],
  });
  const ledger = await readClusterLedger(client, systemClock);
  const statuses = statusesOf(ledger, null, Date.now());
  const top = topShapes(
    statuses,
    statuses.flatMap(({ name }) => ledger.charges(name)),
    null,
  );
  const told = await shapes(console, '?group=company');
  t.same(
    told.shapes.map(({ request, fits }) => [request, fits]),
    top.map(({ fitting }) => [fitting.shape.name, fitting.fits]),
  );
  t.match(told.shapes, [
    { group: 'vision', request: /gpu=3/, count: 1, fits: 0, blockedBy: [{ key }] },
    { group: 'vision', request: /gpu=1/, count: 1, fits: 1, blockedBy: [{ key }] },
  ]);
  t.match(
    told.workloads?.map(({ namespace, kind, name, charged }) => [namespace, kind, name, charged]),
    [
      ['research', 'Job', 'large', [`${key}=3`]],
      ['research', 'Job', 'small', [`${key}=1`]],
      ['research', 'Deployment', 'stopped', []],
    ],
    'its workloads, the largest first, and what is stopped last',
  );
  const accountant = await shapes(console, '?group=company', 'accountant');
  t.match(accountant, { workloads: [], moreWorkloads: 3 });
  t.notMatch(JSON.stringify(accountant), /small|large/, 'names of namespaces that the reader may not see');
  t.same((await shapes(console, '?group=nothing')).shapes, []);
});

test('shapes are shown to readers who may list what they are computed from', async (t) => {
  const console = await runningConsole(t, seed);
  t.match(await shapes(console, '', 'lead'), { ok: false, reason: 'you may not list all nodes and pods' });
  t.match(await shapes(console, '?group=company', 'lead'), { ok: false, reason: 'you may not list all groups' });
  t.match(await shapes(console, '?group=company', 'accountant'), { ok: true, shapes: [] });
  console.server.inject({ resource: 'nodes', verb: 'list' }, { do: 'answer', code: 403, reason: 'Forbidden' }, 1);
  t.match(await shapes(console), { ok: false, reason: /^the nodes cannot be listed/ });
  t.match(await shapes(console), { ok: true }, 'a failure is not kept');
});
