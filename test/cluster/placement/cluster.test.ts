import fc from 'fast-check';
import { test } from 'tap';
import { Cluster } from '../../../src/cluster/placement/cluster.js';
import { policyOf } from '../../../src/cluster/placement/policy/policies.js';
import type { Demand } from '../../../src/cluster/placement/demand.js';
import type { ClusterNode } from '../../../src/cluster/placement/node.js';
import { BLOCK, nodeGpu, node, pod } from './builders.js';

function cluster(...nodes: readonly (readonly number[])[]): Cluster {
  const made = new Cluster(policyOf('binpack'));
  for (const [at, blocks] of nodes.entries()) made.setNode(node(`n${at}`, blocks));
  return made;
}

function fitting(of: Cluster, demand: Demand): string[] {
  return of.evaluate(demand, [...of.nodes.keys()]).fits.map(({ name }) => name);
}

function freeCores(of: Cluster, name: string): number[] {
  return [...(of.nodes.get(name)?.free.cores ?? [])];
}

test('a pod whose annotations name GPUs is charged on these GPUs', (t) => {
  const of = cluster([16, 16]);
  const placedPod = of.setPod({
    uid: 'a',
    nodeName: 'n0',
    demand: pod([[30, 4]]),
    gpus: [{ container: 0, indexes: [1] }],
  });
  t.equal(placedPod?.source, 'named');
  t.same(freeCores(of, 'n0'), [100, 70]);
  t.equal(of.nodes.get('n0')?.free.memory[1], 12 * BLOCK);
  of.removePod('a');
  t.same(freeCores(of, 'n0'), [100, 100]);
  t.end();
});

test('a pod without annotations is charged where the node agent would place it, and moves when its annotations name other GPUs', (t) => {
  const of = cluster([16, 16]);
  t.equal(of.setPod({ uid: 'a', nodeName: 'n0', demand: pod([[30, 4]]), gpus: null })?.source, 'concluded');
  t.same(freeCores(of, 'n0'), [70, 100]);
  t.equal(
    of.setPod({ uid: 'a', nodeName: 'n0', demand: pod([[30, 4]]), gpus: [{ container: 0, indexes: [1] }] })?.source,
    'named',
  );
  t.same(freeCores(of, 'n0'), [100, 70]);
  t.end();
});

test('charges follow the UUIDs of the GPUs when the driver numbers them anew', (t) => {
  const four = ['A', 'B', 'C', 'D'];
  const shaped = (uuids: readonly string[]) => ({
    ...node(
      'n0',
      uuids.map(() => 16),
    ),
    gpus: uuids.map((uuid, index) => {
      const made = nodeGpu(index, 16);
      return { ...made, gpu: { ...made.gpu, uuid } };
    }),
  });
  const of = new Cluster(policyOf('binpack'));
  of.setNode(shaped(four));
  const named = (container: number, index: number) => ({ container, indexes: [index], uuids: [four[index] as string] });
  of.setPod({ uid: 'b', nodeName: 'n0', demand: pod([[60, 4]]), gpus: [named(0, 1)] });
  of.setPod({ uid: 'd', nodeName: 'n0', demand: pod([[60, 4]]), gpus: [named(0, 3)] });
  t.ok(of.decide('c', 'n0', pod([[50, 4]], { selection: { ...pod([]).selection, uuids: ['C'] } })).ok);
  t.same(freeCores(of, 'n0'), [100, 40, 50, 40]);
  of.setNode(shaped(['B', 'C', 'D']));
  t.same(freeCores(of, 'n0'), [40, 50, 40], 'GPU 0 was taken out');
  of.setPod({ uid: 'd', nodeName: 'n0', demand: pod([[60, 4]]), gpus: [{ container: 0, indexes: [2], uuids: ['D'] }] });
  t.same(freeCores(of, 'n0'), [40, 50, 40], 'the agent wrote the annotation again');
  of.setNode(shaped(['D', 'B', 'C']));
  t.same(freeCores(of, 'n0'), [40, 40, 50], 'the same number of GPUs in another order');
  of.setPod({
    uid: 'e',
    nodeName: 'n0',
    demand: pod([[10, 4]]),
    gpus: [{ container: 0, indexes: [1], uuids: ['gone'] }],
  });
  t.equal(of.placedPods.get('e')?.source, 'concluded', 'an index beside an unknown UUID is another GPU by now');
  t.end();
});

test('the cluster ignores annotations that cannot be right', (t) => {
  const of = cluster([16, 16]);
  const rows: [string, Demand, { container: number; indexes: number[] }[]][] = [
    ['a GPU that is not there', pod([[30, 4]]), [{ container: 0, indexes: [7] }]],
    ['two GPUs for a part', pod([[30, 4]]), [{ container: 0, indexes: [0, 1] }]],
    ['one GPU for two', pod([[200, 0]]), [{ container: 0, indexes: [0] }]],
    ['another container', pod([[30, 4]]), [{ container: 1, indexes: [0] }]],
  ];
  for (const [name, demand, gpus] of rows)
    t.equal(of.setPod({ uid: 'a', nodeName: 'n0', demand, gpus })?.source, 'concluded', name);
  t.end();
});

test('the cluster keeps pods that it sees before their node, and pods of a node that returns with other GPUs', (t) => {
  const of = cluster();
  of.setPod({ uid: 'a', nodeName: 'late', demand: pod([[30, 4]]), gpus: [{ container: 0, indexes: [1] }] });
  of.setPod({ uid: 'b', nodeName: 'late', demand: pod([[100, 0]]), gpus: null });
  of.setNode(node('late', [16, 16]));
  t.same(freeCores(of, 'late'), [0, 70]);
  of.setNode(node('late', [16, 16, 16]));
  t.same(freeCores(of, 'late'), [0, 70, 100]);
  of.removeNode('late');
  t.same(fitting(of, pod([[10, 1]])), []);
  of.setNode(node('late', [16, 16]));
  t.same(freeCores(of, 'late'), [0, 70]);
  of.removePod('a');
  of.removePod('b');
  t.same(freeCores(of, 'late'), [100, 100]);
  t.end();
});

test('a pod for which no GPU had room is charged as soon as a GPU has room', (t) => {
  const of = cluster([16]);
  of.setPod({ uid: 'a', nodeName: 'n0', demand: pod([[100, 0]]), gpus: null });
  t.equal(of.setPod({ uid: 'b', nodeName: 'n0', demand: pod([[60, 4]]), gpus: null })?.source, 'nowhere');
  of.removePod('a');
  t.equal(of.placedPods.get('b')?.source, 'concluded');
  t.same(freeCores(of, 'n0'), [40]);
  t.end();
});

test("the free capacity that the node reports counts where it is less than the cluster's own account", (t) => {
  const of = cluster();
  of.setNode(node('n', [16, 16], { gpus: [nodeGpu(0, 16, { freeCores: 40 }), nodeGpu(1, 16, { usable: false })] }));
  t.same(fitting(of, pod([[40, 4]])), ['n']);
  t.same(fitting(of, pod([[41, 4]])), [], 'the agent still holds 60 cores of GPU 0, and GPU 1 is unhealthy');
  of.setPod({ uid: 'a', nodeName: 'n', demand: pod([[70, 4]]), gpus: [{ container: 0, indexes: [0] }] });
  t.same(freeCores(of, 'n'), [30, 0]);
  t.end();
});

test('refusals distinguish temporary reasons from permanent ones', (t) => {
  const of = cluster([16, 16], [], [16]);
  of.setPod({ uid: 'a', nodeName: 'n2', demand: pod([[100, 0]]), gpus: null });
  const { fits, refused } = of.evaluate(pod([[50, 16]]), ['n0', 'n1', 'n2', 'n3']);
  t.same(
    fits.map(({ name }) => name),
    ['n0'],
  );
  t.same(refused, [
    { name: 'n1', refusal: 'no-gpu' },
    { name: 'n2', refusal: 'no-room' },
    { name: 'n3', refusal: 'unknown-node' },
  ]);
  t.same(of.evaluate(pod([[50, 17]]), ['n0']).refused, [{ name: 'n0', refusal: 'too-large' }]);
  t.end();
});

test('nodes are evaluated anew after each change, though costs of equal pods are known', (t) => {
  const of = cluster([16], [16], [16]);
  const demand = pod([[60, 4]]);
  const offered = (): string[] => {
    const { fits } = of.evaluate(demand, ['n0', 'n1', 'n2']);
    of.costs(demand, fits);
    return fits.map(({ name }) => name);
  };
  t.same(offered(), ['n0', 'n1', 'n2']);
  of.setPod({ uid: 'a', nodeName: 'n0', demand, gpus: null });
  t.same(offered(), ['n1', 'n2']);
  of.reserve('b', demand, [of.nodes.get('n1') as ClusterNode], 1000);
  t.same(offered(), ['n2']);
  of.reservations.drop('b');
  of.removePod('a');
  t.same(offered(), ['n0', 'n1', 'n2']);
  of.setNode(node('n1', [16], { gpus: [nodeGpu(0, 16, { usable: false })] }));
  t.same(offered(), ['n0', 'n2']);
  of.setNode(node('n0', [2]));
  t.same(offered(), ['n2']);
  of.removeNode('n2');
  t.same(offered(), []);
  of.setNode(node('n2', [2]));
  t.same(offered(), []);
  of.setNode(node('n1', [16, 16]));
  t.same(offered(), ['n1']);
  t.end();
});

test('a reservation keeps room on every offered node until the pod is decided', (t) => {
  const of = cluster([16], [16]);
  const demand = pod([[60, 4]]);
  of.reserve('a', demand, [...of.nodes.values()], 1000);
  t.same(fitting(of, demand), []);
  t.same(of.evaluate(demand, ['n0']).refused, [{ name: 'n0', refusal: 'reserved' }]);
  t.ok(of.reservations.undecided);
  t.match(of.decide('a', 'n1', demand), { ok: true, containers: [{ indexes: [0] }] });
  t.same(fitting(of, demand), ['n0']);
  t.notOk(of.reservations.undecided);
  t.end();
});

test('a reservation ends when it is too old or its pod is deleted', (t) => {
  const of = cluster([16]);
  const demand = pod([[60, 4]]);
  of.reserve('a', demand, [...of.nodes.values()], 1000);
  t.same(of.reservations.expire(999), []);
  t.same(of.reservations.expire(1000), ['a']);
  t.same(fitting(of, demand), ['n0']);
  of.reserve('b', demand, [...of.nodes.values()], 1000);
  t.ok(of.reservations.drop('b'));
  t.same(fitting(of, demand), ['n0']);
  t.end();
});

test('a second decision for a pod frees what the first one took', (t) => {
  const of = cluster([16], [16]);
  const demand = pod([[60, 4]]);
  t.ok(of.decide('a', 'n0', demand).ok);
  t.ok(of.decide('a', 'n1', demand).ok);
  t.same([freeCores(of, 'n0'), freeCores(of, 'n1')], [[100], [40]]);
  t.ok(of.decide('a', 'n1', demand).ok, 'the pod goes to the same node again');
  t.same(freeCores(of, 'n1'), [40]);
  t.end();
});

test("a decision stands while the pod's annotations name no GPUs, and yields to annotations that do", (t) => {
  const of = cluster([16, 16], [16, 16]);
  const demand = pod([[60, 4]]);
  of.decide('a', 'n0', demand);
  t.equal(of.setPod({ uid: 'a', nodeName: 'n0', demand, gpus: null })?.source, 'decided');
  of.setPod({ uid: 'a', nodeName: 'n0', demand, gpus: [{ container: 0, indexes: [1] }] });
  t.same(freeCores(of, 'n0'), [100, 40]);
  of.setPod({ uid: 'a', nodeName: 'n1', demand, gpus: null });
  t.same(
    [freeCores(of, 'n0'), freeCores(of, 'n1')],
    [
      [100, 100],
      [40, 100],
    ],
    'the pod was bound to another node',
  );
  t.end();
});

/**
 * Pods are offered nodes; some are decided in another order than they were offered in, some are forgotten, some end.
 */
const step = fc.oneof(
  fc.record({
    do: fc.constant('offer' as const),
    pod: fc.nat(9),
    cores: fc.constantFrom(20, 30, 50, 60, 80, 100, 200),
    blocks: fc.integer({ min: 1, max: 16 }),
  }),
  fc.record({ do: fc.constant('decide' as const), pod: fc.nat(9), node: fc.nat(2) }),
  fc.record({ do: fc.constant('forget' as const), pod: fc.nat(9) }),
  fc.record({ do: fc.constant('end' as const), pod: fc.nat(9) }),
);

test('in any order of offers, decisions and ends, an offered GPU is available and no GPU is charged beyond its capacity', (t) => {
  const check = fc.property(
    fc.array(fc.array(fc.constant(16), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
    fc.array(step, { maxLength: 40 }),
    (nodes, steps) => {
      const of = cluster(...nodes);
      for (const now of steps) {
        const uid = `pod-${now.pod}`;
        if (now.do === 'offer' && !of.placedPods.has(uid)) {
          of.reservations.drop(uid);
          const demand = pod([[now.cores, now.cores < 100 ? now.blocks : 0]]);
          of.reserve(uid, demand, of.evaluate(demand, of.nodes.keys()).fits, 1);
        } else if (now.do === 'decide') {
          const reservation = of.reservations.get(uid);
          const offered = reservation?.rooms[now.node]?.node;
          if (reservation === undefined || offered === undefined) continue;
          if (!of.decide(uid, offered.name, reservation.demand).ok) return false;
        } else if (now.do === 'forget') of.reservations.drop(uid);
        else if (now.do === 'end') of.removePod(uid);
        for (const there of of.nodes.values()) {
          for (const [at, { gpu }] of there.shape.gpus.entries()) {
            const { cores, memoryBytes } = there.used(at);
            if (cores < 0 || cores > 100 || memoryBytes < 0 || memoryBytes > gpu.memoryBytes) return false;
          }
        }
      }
      for (const uid of [...of.placedPods.keys()]) of.removePod(uid);
      return [...of.nodes.values()].every((there) => there.shape.gpus.every((_, at) => there.used(at).cores === 0));
    },
  );
  t.doesNotThrow(() => fc.assert(check, { numRuns: 1500 }));
  t.end();
});

test('the request of an init container stays charged until the init container has ended', (t) => {
  const demand = pod([[100, 0]], { init: pod([[200, 0]]).containers });
  for (const how of ['decided', 'named', 'concluded'] as const) {
    const of = cluster([16, 16, 16]);
    if (how === 'decided') t.ok(of.decide('a', 'n0', demand).ok);
    const bound = {
      uid: 'a',
      nodeName: 'n0',
      demand,
      gpus: how === 'concluded' ? null : [{ container: 0, indexes: [0] }],
    };
    of.setPod({ ...bound, initEnded: false });
    t.same(freeCores(of, 'n0'), [0, 0, 100], `${how}: the pod is charged for both GPUs while the init container runs`);
    of.setPod({ ...bound, initEnded: false });
    t.same(freeCores(of, 'n0'), [0, 0, 100], `${how}: the pod keeps its charge when it is seen again`);
    of.setPod({ ...bound, initEnded: true });
    t.same(
      freeCores(of, 'n0'),
      [0, 100, 100],
      `${how}: the pod is charged for its own GPU when the init container has ended`,
    );
    of.removePod('a');
    t.same(freeCores(of, 'n0'), [100, 100, 100], `${how}: the charge ends with the pod`);
  }
  const late = cluster([16, 16, 16]);
  late.setPod({ uid: 'a', nodeName: 'n0', demand, gpus: null, initEnded: true });
  t.same(freeCores(late, 'n0'), [0, 100, 100], 'the pod is first seen when its init container has ended');
  t.end();
});
