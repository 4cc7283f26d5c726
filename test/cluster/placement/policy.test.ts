import { test } from 'tap';
import { Cluster } from '../../../src/cluster/placement/cluster.js';
import type { Demand } from '../../../src/cluster/placement/demand.js';
import type { NodeShape } from '../../../src/cluster/placement/node.js';
import { policyOf } from '../../../src/cluster/placement/policy/policies.js';
import { POLICY_NAMES, compareCosts, type PolicyName } from '../../../src/cluster/placement/policy/policy.js';
import { topologyOfPairs } from '../../../src/gpu/topology/topology.js';
import { node, pod } from './builders.js';

function cluster(policy: PolicyName, ...nodes: readonly NodeShape[]): Cluster {
  const made = new Cluster(policyOf(policy));
  nodes.forEach((shape) => made.setNode(shape));
  return made;
}

function use(of: Cluster, nodeName: string, cores: number, index: number): void {
  const blocks = cores < 100 ? Math.ceil((cores * 16) / 100) : 0;
  of.setPod({
    uid: `${nodeName}/${index}/${of.placedPods.size}`,
    nodeName,
    demand: pod([[cores, blocks]]),
    gpus: [{ container: 0, indexes: [index] }],
  });
}

function choice(of: Cluster, demand: Demand): string | undefined {
  return of.cheapest(demand, of.evaluate(demand, of.nodes.keys()).fits)?.name;
}

/** Shows these pods to a cluster until they are its typical mix. */
function learn(of: Cluster, demands: readonly Demand[]): void {
  for (let round = 0; round < 64; round++) demands.forEach((demand) => of.observe(demand));
}

const pairsByNvlink = topologyOfPairs(4, (a, b) => ({
  level: 'SYS',
  nvlinks: Math.floor(a / 2) === Math.floor(b / 2) ? 4 : 0,
}));
const onlyPcie = topologyOfPairs(4, () => ({ level: 'PHB', nvlinks: 0 }));
const four = [16, 16, 16, 16];

test('binpack prefers the fullest node, spread the emptiest', (t) => {
  for (const [policy, expected] of [
    ['binpack', 'busy'],
    ['spread', 'idle'],
  ] as const) {
    const of = cluster(policy, node('idle', [16, 16]), node('busy', [16, 16]));
    use(of, 'busy', 30, 0);
    t.equal(choice(of, pod([[20, 2]])), expected, policy);
  }
  t.end();
});

test('binpack compares nodes before the pod is placed', (t) => {
  const of = cluster('binpack', node('mixed', [16, 4]), node('equal', [8, 8]));
  use(of, 'mixed', 30, 1);
  t.equal(choice(of, pod([[100, 0]])), 'mixed', 'fewer cores are free');
  const even = cluster('binpack', node('large', [16, 4]), node('small', [8, 8]));
  t.equal(choice(even, pod([[100, 0]])), 'small', 'of equal cores, less memory is free');
  t.end();
});

test('spread takes the size of a node into account', (t) => {
  const of = cluster('spread', node('small', [16]), node('large', four));
  t.equal(choice(of, pod([[20, 2]])), 'large');
  use(of, 'large', 100, 0);
  use(of, 'large', 100, 1);
  t.equal(choice(of, pod([[20, 2]])), 'small');
  t.end();
});

test('topology places several GPUs on the node with the best links', (t) => {
  const of = cluster(
    'topology',
    node('pcie', four, { topology: onlyPcie }),
    node('nvlink', four, { topology: pairsByNvlink }),
  );
  t.equal(choice(of, pod([[200, 0]])), 'nvlink');
  use(of, 'nvlink', 100, 0);
  use(of, 'nvlink', 100, 2);
  t.equal(choice(of, pod([[200, 0]])), 'pcie', 'both pairs are broken');
  t.end();
});

test('topology keeps linked GPUs together and places small requests elsewhere', (t) => {
  const of = cluster(
    'topology',
    node('nvlink', four, { topology: pairsByNvlink }),
    node('pcie', four, { topology: onlyPcie }),
  );
  t.equal(choice(of, pod([[100, 0]])), 'pcie');
  t.equal(choice(of, pod([[30, 2]])), 'pcie');
  use(of, 'nvlink', 30, 0);
  t.equal(choice(of, pod([[30, 2]])), 'nvlink', 'the pair of this GPU is already broken');
  t.end();
});

test('fragmentation fills a gap that a typical pod could not use', (t) => {
  const of = cluster('fragmentation', node('open', [16, 16]), node('gap', [16, 16]));
  learn(of, [pod([[50, 8]]), pod([[100, 0]])]);
  use(of, 'gap', 70, 0);
  t.equal(choice(of, pod([[30, 4]])), 'gap');
  t.end();
});

test('fragmentation keeps idle nodes for pods that need a whole node', (t) => {
  const of = cluster('fragmentation', node('idle', four), node('broken', four));
  learn(of, [pod([[400, 0]]), pod([[50, 8]])]);
  use(of, 'broken', 50, 0);
  t.equal(choice(of, pod([[100, 0]])), 'broken');
  t.equal(choice(of, pod([[50, 8]])), 'broken');
  t.end();
});

test('fragmentation keeps CPU on nodes that have free GPUs', (t) => {
  const shapes = [node('rich', [16], { cpuMilli: 64_000 }), node('poor', [16], { cpuMilli: 10_000 })];
  const of = cluster('fragmentation', ...shapes);
  learn(of, [pod([[100, 0]], { cpuMilli: 8000 })]);
  use(of, 'rich', 60, 0);
  t.equal(
    choice(of, pod([], { cpuMilli: 4000 })),
    'rich',
    'a pod without GPUs would leave the GPU of the node with little CPU unusable',
  );
  t.end();
});

test('fragmentation takes into account that typical pods require a model', (t) => {
  const of = cluster(
    'fragmentation',
    node('v100', [16, 16], { labels: { model: 'V100' } }),
    node('t4', [16, 16], { labels: { model: 'T4' } }),
  );
  learn(of, [pod([[100, 0]], { selector: { labels: { model: 'V100' }, terms: null } })]);
  t.equal(choice(of, pod([[30, 2]])), 't4', 'no other pod can use the V100s');
  t.end();
});

test('before it has learned a mix, fragmentation prefers the fuller node', (t) => {
  const of = cluster('fragmentation', node('idle', [16, 16]), node('busy', [16, 16]));
  use(of, 'busy', 30, 0);
  t.equal(choice(of, pod([[20, 2]])), 'busy');
  t.end();
});

for (const policy of POLICY_NAMES) {
  test(`${policy} computes the same costs with and without its cache`, (t) => {
    const shapes = [
      node('a', four, { topology: pairsByNvlink }),
      node('b', four, { topology: onlyPcie }),
      node('c', [16, 8]),
    ];
    const kept = cluster(policy, ...shapes);
    const demands = [
      pod([[30, 2]]),
      pod([[100, 0]]),
      pod([[200, 0]]),
      pod([
        [20, 2],
        [50, 4],
      ]),
    ];
    learn(kept, demands);
    for (let round = 0; round < 6; round++) {
      use(kept, ['a', 'b', 'c'][round % 3] as string, 40, round % 2);
      const fresh = cluster(policy, ...shapes);
      learn(fresh, demands);
      for (const { pod: there } of kept.placedPods.values()) fresh.setPod(there);
      for (const demand of demands) {
        const costsOf = (of: Cluster) => of.costs(demand, [...of.nodes.values()]);
        t.same(costsOf(kept), costsOf(fresh));
      }
    }
    t.end();
  });
}

test('costs that differ only by rounding are equal', (t) => {
  t.equal(compareCosts(0.1 + 0.2, 1, 0.3, 1), 0);
  t.ok(compareCosts(1, 1, 1, 2) < 0);
  t.ok(compareCosts(2, 1, 1, 2) > 0);
  t.end();
});
