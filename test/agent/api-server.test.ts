import tap, { test, type Test } from 'tap';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import { decodeInventory } from '../../src/gpu/node-inventory.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import type { JournalEntry } from '../../src/agent/node/journal.js';
import { systemClock } from '../../src/host/clock.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { SIX_GPUS } from './gpus.js';
import { NODE_NAME, startedCluster, type Cluster } from './cluster.js';
import { admitted, gpuIndexes, limitsOf, only } from './node.js';
import { container, pod, simplePod } from './pods.js';

/** Tests of a troubled API server mostly wait, and each has its own node: they run at the same time. */
tap.jobs = 4;

const watched = (cluster: Cluster): Promise<true> =>
  eventually(() => cluster.server.watches('pods').length === 1, 'the watch');

test('the GPUs of a started container appear in the annotations of its pod and in an event', async (t) => {
  const cluster = await startedCluster(t);
  const wanted = pod([container('log', 0, 0), container('main', 200, 16)]);
  cluster.submit(wanted);
  const [, given] = admitted(await cluster.admit(wanted));
  await cluster.node.kubelet.startContainer(wanted.uid, 'main');
  t.ok(given);
  await eventually(() => cluster.annotation(wanted, 'gpu-assigned') === 'true');
  t.equal(cluster.annotation(wanted, 'predicate-gpu-idx-1'), given === undefined ? '' : gpuIndexes(given).join(','));
  t.match(cluster.annotation(wanted, 'predicate-time'), /^\d{19}$/);
  t.match(await eventually(() => cluster.eventsOn(wanted)[0]), {
    reason: 'GPUAssigned',
    type: 'Normal',
    involvedObject: { fieldPath: 'spec.containers{main}' },
  });
});

test('the agent uses the GPU that the extender chose if it has room, and corrects the pod otherwise', async (t) => {
  const cluster = await startedCluster(t);
  const predicted = {
    'tencent.com/predicate-gpu-idx-0': '4',
    'tencent.com/predicate-time': '7',
    'tencent.com/gpu-assigned': 'false',
  };
  const [first, second] = [simplePod(60, 16), simplePod(60, 16)];
  for (const [wanted, expected] of [
    [first, 4],
    [second, null],
  ] as const) {
    cluster.submit(wanted, { annotations: predicted });
    await cluster.known(wanted);
    const given = only(admitted(await cluster.admit(wanted)));
    await cluster.node.kubelet.startContainer(wanted.uid, 'main');
    if (expected !== null) t.same(gpuIndexes(given), [expected]);
    else t.not(gpuIndexes(given)[0], 4);
    await eventually(() => cluster.annotation(wanted, 'gpu-assigned') === 'true');
    t.equal(cluster.annotation(wanted, 'predicate-gpu-idx-0'), String(gpuIndexes(given)[0]));
    t.equal(cluster.annotation(wanted, 'predicate-time'), '7');
  }
});

test('annotations and predictions follow a GPU by its UUID when another one is taken out', async (t) => {
  const parsed = parseSimNode(JSON.stringify({ gpus: [0, 1, 2].map(() => ({ memoryMiB: 16_384 })) }));
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node, systemClock);
  const uuids = parsed.node.gpus.map(({ uuid }) => uuid);
  const cluster = await startedCluster(t, { gpus: '{"gpus":[]}', seams: { driver } });
  const at = (index: number) => ({
    'tencent.com/predicate-gpu-idx-0': String(index),
    'tencent.com/predicate-gpu-uuid-0': `${index}:${uuids[index]}`,
  });
  const visible = (given: GivenContainer): string | undefined => given.environment['NVIDIA_VISIBLE_DEVICES'];
  const running = simplePod(60, 16);
  cluster.submit(running, { annotations: at(2) });
  await cluster.known(running);
  t.equal(visible(only(admitted(await cluster.admit(running)))), uuids[2]);
  await cluster.node.kubelet.startContainer(running.uid, 'main');
  await eventually(() => cluster.annotation(running, 'gpu-assigned') === 'true');
  driver.remove(uuids[0] as string);
  await eventually(() => cluster.annotation(running, 'predicate-gpu-idx-0') === '1', 'the new index');
  t.equal(cluster.annotation(running, 'predicate-gpu-uuid-0'), `1:${uuids[2]}`);
  const predicted = simplePod(30, 16);
  cluster.submit(predicted, { annotations: at(1) });
  await cluster.known(predicted);
  t.equal(visible(only(admitted(await cluster.admit(predicted)))), uuids[1], 'the extender saw the earlier numbers');
});

test('a refused pod carries the reason; a pod with a controller is deleted, a pod without one stays', async (t) => {
  const cluster = await startedCluster(t);
  const [owned, naked] = [simplePod(150, 16), simplePod(150, 16)];
  cluster.submit(owned, { controller: { kind: 'ReplicaSet', name: 'web-5d' } });
  cluster.submit(naked);
  for (const wanted of [owned, naked]) t.equal((await cluster.admit(wanted)).ok, false);
  for (const wanted of [owned, naked]) {
    const event = await eventually(() => cluster.eventsOn(wanted)[0]);
    t.match(event, {
      reason: 'GPURefused',
      type: 'Warning',
      message: /^tencent\.com\/vcuda-core: 150 is more than one GPU and not a multiple of 100/,
    });
  }
  await eventually(() => cluster.object(owned) === null, 'the deletion');
  t.ok(cluster.object(naked));
  const answer = await fetch(`http://127.0.0.1:${cluster.node.agent.httpPort()}/api/events`);
  const { events } = (await answer.json()) as { events: readonly JournalEntry[] };
  t.match(
    events.filter(({ kind }) => kind === 'Refused'),
    [owned, naked].map(({ namespace, name }) => ({
      owner: { namespace, pod: name },
      message: new RegExp(`^${namespace}/${name}: tencent\\.com/vcuda-core: 150 is more than one GPU`),
      count: 1,
    })),
    'the events of the node name both pods, and nothing is listed twice',
  );
});

test('the node publishes its GPUs as labels and as an inventory that follows the ledger', async (t) => {
  const parsed = parseSimNode(SIX_GPUS);
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node);
  const cluster = await startedCluster(t, {
    seams: { driver },
    config: {
      nodeLabels: new Map([
        ['team', 'vision'],
        ['bad label', 'x'],
      ]),
    },
  });
  const inventory = () =>
    decodeInventory(
      cluster.server.read('nodes', '', NODE_NAME)?.metadata.annotations?.['tencent.com/gpu-inventory'] ?? '',
    );
  const first = await eventually(() => {
    const read = inventory();
    return read.ok ? read.inventory : null;
  });
  t.equal(first.gpus.length, 6);
  t.ok(first.gpus.every((gpu) => gpu.healthy && gpu.freeCores === 100));
  const labels = cluster.server.read('nodes', '', NODE_NAME)?.metadata.labels ?? {};
  t.equal(labels.team, 'vision');
  t.ok(labels['gaia.tencent.com/gpu-model']);
  t.notOk('bad label' in labels);
  const wanted = simplePod(30, 16);
  cluster.submit(wanted);
  const [used] = gpuIndexes(only(admitted(await cluster.admit(wanted))));
  driver.lose(first.gpus.find(({ gpu }) => gpu.index !== used)?.gpu.uuid ?? '');
  const lost = await eventually(() => {
    const read = inventory();
    return read.ok && read.inventory.gpus.some(({ healthy }) => !healthy) ? read.inventory : null;
  });
  t.equal(lost.gpus.find(({ gpu }) => gpu.index === used)?.freeCores, 70, 'the write of the lost GPU carries the room');
});

test('a pod that the kubelet admits before the agent knows it is judged by its whole request', async (t) => {
  const cluster = await startedCluster(t);
  await watched(cluster);
  const wanted = simplePod(20, 0);
  const admission = cluster.node.kubelet.admit(wanted);
  setTimeout(() => cluster.submit(wanted), 100);
  t.match(await admission, {
    ok: false,
    message: /20 is a part of a GPU and needs tencent\.com\/vcuda-memory as well/,
  });
});

test('32-bit programs find 32-bit libraries, and containers that are not identified find libraries of both widths', async (t) => {
  const cluster = await startedCluster(t);
  const old = pod([{ ...container('main', 30, 8), env: { compat32: 'true' } }]);
  const [same, other] = [simplePod(30, 8), simplePod(20, 8)];
  const libraryPath = async (wanted: EmulatedPod): Promise<string | undefined> => {
    await cluster.known(wanted);
    const given = only(admitted(await cluster.admit(wanted)));
    await cluster.node.kubelet.startContainer(wanted.uid, 'main');
    return given.environment.LD_LIBRARY_PATH;
  };
  cluster.submit(old);
  t.equal(await libraryPath(old), '/usr/local/nvidia/lib');
  cluster.submit(other);
  t.equal(await libraryPath(other), '/usr/local/nvidia/lib64');
  const again = pod([{ ...container('main', 30, 8), env: { compat32: 'true' } }]);
  cluster.submit(again);
  cluster.submit(same);
  await cluster.known(again);
  t.equal(await libraryPath(same), '/usr/local/nvidia/lib64:/usr/local/nvidia/lib');
});

interface Trouble {
  readonly name: string;
  /** Injects a fault into the server; returns the function that ends it. */
  begin(cluster: Cluster): Promise<() => Promise<void>>;
}

const lie = (list: Readonly<Record<string, unknown>>): unknown => ({
  ...list,
  items: (list.items as KubeObject[]).map((object) => ({
    ...object,
    spec: {
      nodeName: NODE_NAME,
      containers: [
        { name: 'main', resources: { limits: { 'tencent.com/vcuda-core': '10', 'tencent.com/vcuda-memory': '63' } } },
      ],
    },
  })),
});

/** Lists are distorted, events are denied, and the agent has to list again, now and after the fault ends. */
async function lyingLists(
  { server }: Cluster,
  change: (list: Readonly<Record<string, unknown>>) => unknown,
): Promise<() => Promise<void>> {
  const lists = (): number => server.requests.filter((request) => request.verb === 'list').length;
  const before = lists();
  server.inject({ verb: 'list' }, { do: 'distort', change });
  server.inject({ verb: 'watch' }, { do: 'distort', change: (event) => ({ ...event, type: 'DELETED' }) });
  for (const stream of server.watches()) stream.expire();
  await eventually(() => lists() > before && server.watches().length === 1, 'the distorted list to arrive');
  return async () => {
    server.clearFaults();
    for (const stream of server.watches()) stream.expire();
  };
}

const TROUBLES: readonly Trouble[] = [
  {
    name: 'dead',
    begin: async ({ server }) => {
      await server.stop();
      return () => server.start();
    },
  },
  {
    name: 'silent',
    begin: async ({ server }) => {
      server.freeze();
      return async () => server.thaw();
    },
  },
  {
    name: 'slow',
    begin: async ({ server }) => {
      server.inject({ verb: ['get', 'list', 'patch', 'create', 'delete'] }, { do: 'delay', ms: 400 });
      return async () => server.clearFaults();
    },
  },
  {
    name: 'refusing every request',
    begin: async ({ server }) => {
      server.inject({}, { do: 'answer', code: 503 });
      return async () => server.clearFaults();
    },
  },
  { name: 'reporting false requests of pods', begin: (cluster) => lyingLists(cluster, lie) },
  { name: 'listing no pods', begin: (cluster) => lyingLists(cluster, (list) => ({ ...list, items: [] })) },
  {
    name: 'losing every answer',
    begin: async ({ server }) => {
      server.inject({ verb: ['get', 'list', 'patch', 'create', 'delete'] }, { do: 'lose-answer' });
      return async () => server.clearFaults();
    },
  },
];

/** Admits and starts pods; returns the faults of what they and the earlier pods hold now. */
async function wrongAnswers(
  cluster: Cluster,
  pods: readonly EmulatedPod[],
  given: GivenContainer[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const wanted of pods) {
    const admission = await cluster.node.kubelet.admit(wanted);
    if (!admission.ok) {
      wrong.push(`${wanted.name}: ${admission.message}`);
      continue;
    }
    given.push(only(admission.containers));
    await cluster.node.kubelet.startContainer(wanted.uid, 'main');
  }
  const coresOfGpu = new Map<number, number>();
  for (const entry of given) {
    const { devices } = await limitsOf(entry);
    const share = devices.reduce((sum, device) => sum + device.share, 0);
    const blocks = devices.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0) / 268_435_456;
    if (share !== entry.coreIds.length || blocks !== entry.memoryIds.length)
      wrong.push(
        `${share} cores and ${blocks} blocks instead of ${entry.coreIds.length} and ${entry.memoryIds.length}`,
      );
    for (const gpu of gpuIndexes(entry)) {
      coresOfGpu.set(gpu, (coresOfGpu.get(gpu) ?? 0) + share);
      if ((coresOfGpu.get(gpu) ?? 0) > 100) wrong.push(`GPU ${gpu} was given away twice`);
    }
  }
  return wrong;
}

for (const trouble of TROUBLES) {
  void test(
    `pods are admitted and started while the API server is ${trouble.name}, and the agent reports them afterwards`,
    { buffered: true },
    async (t: Test) => {
      const cluster = await startedCluster(t);
      await watched(cluster);
      const given: GivenContainer[] = [];
      const before = [simplePod(60, 16), simplePod(60, 16), simplePod(60, 16)];
      for (const wanted of before) cluster.submit(wanted);
      t.same(await wrongAnswers(cluster, before, given), []);
      const recover = await trouble.begin(cluster);
      const pods = [simplePod(30, 16), simplePod(50, 16), simplePod(30, 16), simplePod(100, 0), simplePod(100, 8)];
      for (const wanted of pods) cluster.submit(wanted);
      t.same(await wrongAnswers(cluster, pods, given), []);
      await recover();
      await eventually(
        () => pods.every((wanted) => cluster.annotation(wanted, 'gpu-assigned') === 'true'),
        'the annotations',
        60_000,
      );
    },
  );
}

test('an agent starts and admits pods without an API server, and later reports what an earlier run could not report', async (t) => {
  const cluster = await startedCluster(t);
  await watched(cluster);
  await cluster.server.stop();
  const given: GivenContainer[] = [];
  const before = simplePod(30, 16);
  cluster.submit(before);
  t.same(await wrongAnswers(cluster, [before], given), []);
  await cluster.node.stopAgent();
  await cluster.node.startAgent();
  const after = simplePod(30, 16);
  cluster.submit(after);
  t.same(await wrongAnswers(cluster, [after], given), []);
  await cluster.server.start();
  await eventually(
    () => [before, after].every((wanted) => cluster.annotation(wanted, 'gpu-assigned') === 'true'),
    'the annotations',
    60_000,
  );
});
