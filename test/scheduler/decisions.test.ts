import { failure } from '../../src/kube/failure.js';
import { test } from 'tap';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { eventually } from '../harness/eventually.js';
import { node, plainNode, pod, type PodObject } from './objects.js';
import { predicted, settle, start, type Rig } from './scheduler.js';

/** A pod waits for decisions as long as a test on a busy machine may need for them. */
const PATIENT = { settleTimeoutMs: 60_000 };

/** Cores that the annotations of bound pods take from each GPU of each node. */
function booked(rig: Rig): Map<string, number> {
  const cores = new Map<string, number>();
  for (const { spec, metadata } of rig.api.pods.values()) {
    if (spec?.nodeName === undefined) continue;
    for (const [at, { resources }] of (spec.containers ?? []).entries()) {
      const wanted = Number(resources?.limits?.['tencent.com/vcuda-core'] ?? 0);
      for (const index of (metadata?.annotations?.[`tencent.com/predicate-gpu-idx-${at}`] ?? '').split(',')) {
        if (index === '') continue;
        const key = `${spec.nodeName}/${index}`;
        cores.set(key, (cores.get(key) ?? 0) + Math.min(100, wanted));
      }
    }
  }
  return cores;
}

for (const binds of ['extender', 'scheduler'] as const) {
  test(`a hundred concurrent pods, bound by the ${binds}, fill every GPU and exceed none`, async (t) => {
    const rig = await start(t, [node('n', new Array<number>(8).fill(16))]);
    rig.api.watchLagMs = 5;
    rig.api.writeLagMs = 3;
    const pods = Array.from({ length: 100 }, (_, at) => pod(`p${at}`, [[at % 2 === 0 ? 30 : 50, 4]]));
    pods.forEach((wanted) => rig.api.setPod(wanted));
    const bindings: Promise<unknown>[] = [];
    let refused = 0;
    for (const wanted of pods) {
      const outcome = await rig.scheduler.schedule(wanted, binds);
      if ('node' in outcome) bindings.push(outcome.bound.then(({ Error: error }) => t.equal(error, '')));
      else refused++;
    }
    await Promise.all(bindings);
    await eventually(() =>
      [...rig.api.pods.values()].every(
        ({ spec, metadata }) =>
          spec?.nodeName === undefined || metadata?.annotations?.['tencent.com/predicate-time'] !== undefined,
      ),
    );
    const cores = [...booked(rig).values()];
    t.equal(cores.length, 8);
    t.ok(
      cores.every((sum) => sum <= 100),
      cores.join(),
    );
    t.ok(
      cores.every((sum) => sum >= 80),
      `a refused pod has no room on any GPU: ${cores.join()}`,
    );
    t.equal(refused + bindings.length, 100);
  });
}

test('concurrent pods on many nodes, with a slow watch and an arbitrary scheduler, never exceed a GPU', async (t) => {
  const rig = await start(
    t,
    Array.from({ length: 6 }, (_, at) => node(`n${at}`, [16, 16])),
  );
  rig.api.watchLagMs = 20;
  rig.api.writeLagMs = 5;
  const pods = Array.from({ length: 60 }, (_, at) =>
    pod(`p${at}`, at % 5 === 0 ? [[200, 0]] : at % 3 === 0 ? [[100, 0]] : [[40, 6]]),
  );
  pods.forEach((wanted) => rig.api.setPod(wanted));
  const bindings: Promise<unknown>[] = [];
  for (const [at, wanted] of pods.entries()) {
    const { NodeNames: names } = await rig.scheduler.filter(wanted, [...rig.api.nodes.keys()]);
    const chosen = names?.[at % Math.max(1, names.length)];
    if (chosen !== undefined)
      bindings.push(rig.scheduler.bind(wanted, chosen).then(({ Error: error }) => t.equal(error, '')));
  }
  await Promise.all(bindings);
  const cores = [...booked(rig).values()];
  t.ok(
    cores.every((sum) => sum <= 100),
    cores.join(),
  );
  t.ok(cores.reduce((sum, of) => sum + of, 0) >= 12 * 80, 'little capacity is left');
});

test('the binding carries the prediction: node, GPUs, time, not yet assigned', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await settle(rig, pod('p', [[30, 4], null, [100, 0]]));
  t.equal(rig.api.writes.length, 1, 'the annotations are written once');
  t.match(rig.api.writes[0], {
    verb: 'bind',
    node: 'n',
    annotations: {
      'tencent.com/predicate-gpu-idx-0': '0',
      'tencent.com/predicate-gpu-idx-2': '1',
      'tencent.com/predicate-node': 'n',
      'tencent.com/gpu-assigned': 'false',
      'tencent.com/predicate-time': /^\d{19}$/,
    },
  });
});

test('where the scheduler binds, the extender writes the prediction itself, also after an outage of the API server', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  rig.api.failures.push({ ok: true, body: null }, failure('unreachable', 'timeout'));
  const wanted = pod('p', [[30, 4]]);
  rig.api.setPod(wanted);
  const outcome = await rig.scheduler.schedule(wanted, 'scheduler');
  t.match(outcome, { node: 'n' });
  rig.api.setPod({ ...wanted, spec: { ...wanted.spec, nodeName: 'n' } });
  await eventually(() => predicted(rig.api.pod('p')) !== '');
  t.equal(predicted(rig.api.pod('p')), '0');
  t.same(
    rig.api.writes.map(({ verb }) => verb),
    ['bind', 'annotate', 'annotate'],
  );
});

test("a prediction that is written late does not overwrite the agent's annotations", async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const wanted = pod('p', [[30, 4]]);
  rig.api.setPod(wanted);
  await rig.scheduler.filter(wanted, ['n']);
  rig.api.failures.push(failure('unreachable', 'timeout'));
  rig.api.setPod({ ...wanted, spec: { ...wanted.spec, nodeName: 'n' } });
  const assigned = { 'tencent.com/predicate-gpu-idx-0': '1', 'tencent.com/gpu-assigned': 'true' };
  rig.api.setPod({
    ...wanted,
    metadata: { ...wanted.metadata, annotations: assigned },
    spec: { ...wanted.spec, nodeName: 'n' },
  });
  await new Promise((resolve) => setTimeout(resolve, 700));
  t.equal(rig.api.writes.length, 1, 'the write is not retried');
});

test('a pod that is sent again is decided again, whatever its annotations contain', async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  const wanted = pod('p', [[60, 4]]);
  const stale = {
    ...wanted,
    metadata: {
      ...wanted.metadata,
      annotations: {
        'tencent.com/gpu-assigned': 'false',
        'tencent.com/predicate-gpu-idx-0': '1',
        'tencent.com/predicate-node': 'gone',
        'tencent.com/predicate-time': '1',
      },
    },
  };
  rig.api.setPod(stale);
  for (let round = 0; round < 5; round++) {
    t.same((await rig.scheduler.filter(stale, ['n'])).NodeNames, ['n'], 'one reservation exists for the pod, not five');
  }
  t.equal(await settle(rig, stale), 'n: 0');
});

test('a refused binding frees the GPUs, and the pod can be decided again', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  rig.api.failures.push(failure('forbidden', 'forbidden'));
  t.equal(await settle(rig, pod('p', [[100, 0]])), 'error: forbidden: forbidden');
  t.equal(await settle(rig, pod('q', [[100, 0]])), 'n: 0');
});

test('a binding without an answer keeps its GPUs until the extender knows the result', async (t) => {
  const rig = await start(t, [node('n', [16]), node('m', [16])]);
  rig.api.failures.push(failure('unreachable', 'timeout'));
  const wanted = pod('p', [[100, 0]]);
  t.equal(await settle(rig, wanted), 'error: unreachable: timeout');
  const [held] = rig.api.writes;
  t.same((await rig.scheduler.filter(pod('q', [[100, 0]]), [held?.node ?? ''])).NodeNames, []);
  const again = await rig.scheduler.filter(wanted, ['n', 'm']);
  t.same(again.NodeNames, [held?.node], 'the pod itself may only go to the node where it may already be bound');
});

test('the extender does not bind a pod twice', async (t) => {
  const rig = await start(t, [node('n', [16]), node('m', [16])]);
  const wanted = pod('p', [[100, 0]]);
  const [first] = [await settle(rig, wanted)];
  const other = first.startsWith('n') ? 'm' : 'n';
  t.match(await rig.scheduler.bind(wanted, other), { Error: /^the pod is already on .$/ });
  t.match(await rig.scheduler.bind(pod('unheard-of', [[10, 1]]), 'n'), { Error: /is not known/ });
});

test('the end of a pod frees its GPUs', async (t) => {
  const rig = await start(t, [node('n', [16])]);
  t.equal(await settle(rig, pod('p', [[100, 0]])), 'n: 0');
  t.equal(await settle(rig, pod('q', [[10, 1]])), 'none');
  rig.api.setPod({ ...rig.api.pod('p'), status: { phase: 'Succeeded' } });
  t.equal(await settle(rig, pod('r', [[100, 0]])), 'n: 0');
  rig.api.deletePod('r');
  t.equal(await settle(rig, pod('s', [[100, 0]])), 'n: 0');
});

test('a pod waits for pending decisions that block it', async (t) => {
  const rig = await start(t, [node('n', [16]), node('m', [16])], PATIENT);
  await rig.scheduler.filter(pod('p', [[100, 0]]), ['n', 'm']);
  const waits = rig.scheduler.filter(pod('q', [[100, 0]]), ['n', 'm']);
  const wanted = pod('p', [[100, 0]]);
  rig.api.setPod(wanted);
  await rig.scheduler.bind(wanted, 'n');
  t.same((await waits).NodeNames, ['m'], 'as soon as the first pod is decided, the second pod gets the other GPU');
});

test('a pod waits a limited time for a decision that does not come', async (t) => {
  const rig = await start(t, [node('n', [16])], { settleTimeoutMs: 100 });
  t.same((await rig.scheduler.filter(pod('p', [[100, 0]]), ['n'])).NodeNames, ['n']);
  const late = await rig.scheduler.filter(pod('q', [[100, 0]]), ['n']);
  t.match(late.FailedNodes.n, /is reserved for pods that are being placed/);
});

test('of the pods that wait for the same decision, one gets the room that it leaves', async (t) => {
  const rig = await start(t, [node('a', [16]), node('b', [16])], PATIENT);
  const first = pod('first', [[100, 0]]);
  rig.api.setPod(first);
  await rig.scheduler.filter(first, ['a', 'b']);
  const waiters = ['q', 'r', 's'].map((name) => pod(name, [[100, 0]]));
  waiters.forEach((wanted) => rig.api.setPod(wanted));
  const answers = waiters.map((wanted) => rig.scheduler.filter(wanted, ['a', 'b']));
  await eventually(async () => Number(await metric(rig, 'gpu_extender_waits_total')) === 3, 'three waiting pods');
  t.same(await rig.scheduler.bind(first, 'a'), { Error: '' });
  const winner = await Promise.race(answers.map((answer, at) => answer.then(() => waiters[at] as PodObject)));
  t.same(await rig.scheduler.bind(winner, 'b'), { Error: '' }, 'the others wait for its decision in turn');
  const told = (await Promise.all(answers)).map(({ NodeNames }) => NodeNames?.join() ?? '');
  t.same(told.sort(), ['', '', 'b']);
});

async function metric(rig: Rig, name: string): Promise<string> {
  const text = await (await fetch(`${rig.url}/metrics`)).text();
  return new RegExp(`^${name} (.+)$`, 'mu').exec(text)?.[1] ?? '';
}

test('the extender uses the sizes and health of GPUs that the node reports', async (t) => {
  const rig = await start(t, [node('n', [16, 40, 40], { unhealthy: [2] })]);
  t.equal(await settle(rig, pod('large', [[50, 30]])), 'n: 1');
  t.equal(await settle(rig, pod('larger', [[50, 30]])), 'none');
  t.equal(await settle(rig, pod('small', [[50, 10]])), 'n: 1');
  t.equal(await settle(rig, pod('whole', [[100, 0]])), 'n: 0');
  rig.api.setNode(node('n', [16, 40, 40]));
  t.equal(await settle(rig, pod('more', [[100, 40]])), 'n: 2', 'the GPU has recovered');
});

test('a node with an unreadable inventory counts as a node without inventory', async (t) => {
  const rig = await start(t, [plainNode('n', 200, 32, { annotations: { [NODE_INVENTORY_KEY]: '{"version":99}' } })]);
  t.equal(await settle(rig, pod('p', [[50, 4]])), 'n: 0');
});

test("the agent's annotations take precedence over the prediction", async (t) => {
  const rig = await start(t, [node('n', [16, 16])]);
  await settle(rig, pod('p', [[60, 4]]));
  const there = rig.api.pod('p');
  rig.api.setPod({
    ...there,
    metadata: {
      ...there.metadata,
      annotations: {
        ...there.metadata?.annotations,
        'tencent.com/predicate-gpu-idx-0': '1',
        'tencent.com/gpu-assigned': 'true',
      },
    },
  });
  t.equal(await settle(rig, pod('q', [[60, 4]])), 'n: 0');
  t.equal(await settle(rig, pod('r', [[60, 4]])), 'none');
});

test('pods that another scheduler placed are charged, with or without GPUs in their annotations', async (t) => {
  const named = pod('named', [[60, 4]], { nodeName: 'n' });
  const rig = await start(t, [node('n', [16, 16])]);
  rig.api.setPod({
    ...named,
    metadata: {
      ...named.metadata,
      annotations: { 'tencent.com/predicate-gpu-idx-0': '1', 'tencent.com/gpu-assigned': 'true' },
    },
  });
  rig.api.setPod(pod('unnamed', [[70, 4]], { nodeName: 'n' }));
  t.equal(await settle(rig, pod('p', [[40, 4]])), 'n: 1');
  t.equal(await settle(rig, pod('q', [[40, 4]])), 'none');
});

test('with --offer=best only the nodes that score ten are offered, and room is reserved on no other', async (t) => {
  const nodes = [node('empty', [16]), node('fuller', [16, 16]), node('small', [2]), node('twin', [16, 16])];
  const rig = await start(t, nodes, { offer: 'best', policy: 'binpack' });
  t.equal(await settle(rig, pod('first', [[50, 4]])), 'empty: 0');
  const names = nodes.map(({ metadata }) => metadata?.name ?? '');
  rig.api.setPod(pod('next', [[30, 4]]));
  const offered = await rig.scheduler.filter(pod('next', [[30, 4]]), names);
  t.same(offered, { Nodes: null, NodeNames: ['empty'], FailedNodes: {}, FailedAndUnresolvableNodes: {}, Error: '' });
  rig.api.setPod(pod('whole', [[100, 0]]));
  const all = await rig.scheduler.filter(pod('whole', [[100, 0]]), ['fuller', 'twin']);
  t.same(all.NodeNames, ['fuller', 'twin'], 'equal nodes are all offered');
  rig.api.setPod(pod('large', [[800, 0]]));
  const refused = await rig.scheduler.filter(pod('large', [[800, 0]]), names);
  t.same(refused.NodeNames, []);
  t.same(Object.keys(refused.FailedNodes).sort(), names.toSorted(), 'where no node fits, each has its reason');
});

test('with --offer=best, sixteen of many equal nodes are offered, from all parts of the list', async (t) => {
  const nodes = Array.from({ length: 64 }, (_, at) => node(`n${at}`, [16]));
  const rig = await start(t, nodes, { offer: 'best' });
  rig.api.setPod(pod('p', [[50, 4]]));
  const offered = await rig.scheduler.filter(
    pod('p', [[50, 4]]),
    nodes.map(({ metadata }) => metadata?.name ?? ''),
  );
  t.same(
    offered.NodeNames,
    Array.from({ length: 16 }, (_, at) => `n${4 * at}`),
  );
});

test('with --offer=best a node that changed is judged again for the next pod', async (t) => {
  const rig = await start(t, [node('a', [16]), node('b', [16, 16])], { offer: 'best', policy: 'binpack' });
  const offered = async (name: string): Promise<readonly string[] | null> => {
    rig.api.setPod(pod(name, [[60, 4]]));
    const { NodeNames: names } = await rig.scheduler.filter(pod(name, [[60, 4]]), ['a', 'b']);
    rig.api.deletePod(name);
    return names;
  };
  t.same(await offered('one'), ['a']);
  t.equal(await settle(rig, pod('two', [[60, 4]])), 'a: 0');
  t.same(await offered('three'), ['b'], 'a pod was bound to the best node');
  rig.api.deletePod('two');
  t.same(await offered('four'), ['a'], 'it was deleted');
  rig.api.setNode(node('a', [16], { unhealthy: [0] }));
  t.same(await offered('five'), ['b'], 'the GPU of the best node became unhealthy');
});

test('a pod that changed since the watch saw it is decided by what the scheduler sends', async (t) => {
  const rig = await start(t, [node('a', [16])]);
  const version = (resourceVersion: string, cores: number): PodObject => {
    const { metadata, ...others } = pod('p', [[cores, 4]]);
    return { ...others, metadata: { ...metadata, resourceVersion } };
  };
  rig.api.setPod(version('1', 200));
  const fits = async (given: PodObject): Promise<boolean> =>
    ((await rig.scheduler.filter(given, ['a'])).NodeNames ?? []).length > 0;
  t.equal(await fits(version('1', 200)), false);
  t.equal(await fits(version('2', 50)), true, 'the watch has not seen this version yet');
  rig.api.setPod(version('2', 50));
  t.equal(await fits(version('2', 50)), true);
  t.equal(await fits(version('3', 200)), false);
});
