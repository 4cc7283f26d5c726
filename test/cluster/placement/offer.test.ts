import fc from 'fast-check';
import { test } from 'tap';
import { Cluster } from '../../../src/cluster/placement/cluster.js';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
import type { Demand } from '../../../src/cluster/placement/demand.js';
import { EvictionSimulation } from '../../../src/cluster/placement/eviction-simulation.js';
import type { ClusterNode } from '../../../src/cluster/placement/node.js';
import { policyOf } from '../../../src/cluster/placement/policy/policies.js';
import { CORES_PER_GPU } from '../../../src/gpu/resources.js';
import { cases } from '../../cases.js';
import { BLOCK, node, pod } from './builders.js';

const BLOCKS = 16;
const WHOLE: readonly [number, number] = [100, 16];

function asking([cores, blocks]: readonly [number, number], suspendable: boolean): Demand {
  if (!suspendable) return pod([[cores, blocks]]);
  const container = { container: 0, cores, memoryBytes: blocks * BLOCK, suspendable: true as const };
  return pod([], { containers: [container], selection: { ...ANY_GPUS, suspendable: true } });
}

function offering(gpus: number, suspendFactor = 3): Cluster {
  const made = new Cluster(policyOf('binpack'));
  made.setNode(node('n0', Array<number>(gpus).fill(BLOCKS), { suspendFactor }));
  return made;
}

function fits(of: Cluster, demand: Demand): boolean {
  return of.evaluate(demand, ['n0']).fits.length > 0;
}

/** Filters and binds a pod; false if it has no room. */
function bind(of: Cluster, uid: string, demand: Demand): boolean {
  return fits(of, demand) && of.decide(uid, 'n0', demand).ok;
}

test('a node that offers three times its GPU gets three suspendable pods of a whole GPU, and no other', (t) => {
  const of = offering(1);
  t.same(
    ['a', 'b', 'c', 'd'].map((uid) => bind(of, uid, asking(WHOLE, true))),
    [true, true, true, false],
  );
  t.notOk(fits(of, asking([10, 1], false)));
  for (const uid of ['a', 'b', 'c']) of.removePod(uid);
  t.ok(bind(of, 'e', asking(WHOLE, false)));
  t.notOk(fits(of, asking([10, 1], true)), 'it could never run');
  t.end();
});

test('a suspendable pod goes to the node where it needs no turns', (t) => {
  const of = offering(1);
  of.setNode(node('n1', [BLOCKS]));
  bind(of, 'a', asking(WHOLE, true));
  const demand = asking(WHOLE, true);
  const { fits: found } = of.evaluate(demand, ['n0', 'n1']);
  t.same(
    found.map(({ name }) => name),
    ['n0', 'n1'],
  );
  t.equal(of.cheapest(demand, found)?.name, 'n1');
  t.end();
});

test('evictions make room as the node offers it', (t) => {
  const of = offering(1);
  for (const uid of ['a', 'b', 'c']) bind(of, uid, asking(WHOLE, true));
  const there = of.nodes.get('n0') as ClusterNode;
  const freed = (uid: string) => ({
    charges: of.placedPods.get(uid)?.charges ?? [],
    ...{ cpuMilli: 0, hostMemoryBytes: 0 },
  });
  const [first, ...others] = ['a', 'b', 'c'].map(freed);
  const forAnother = new EvictionSimulation(there, asking(WHOLE, true), first === undefined ? [] : [first]);
  t.ok(forAnother.hasGpus());
  const mustRun = new EvictionSimulation(there, asking([10, 1], false), others);
  t.notOk(mustRun.hasGpus(), 'the third pod leaves no room');
  if (first !== undefined) mustRun.add(first);
  t.ok(mustRun.hasGpus());
  t.end();
});

test('in every history, what must run fits the real GPUs, and all together fit what they offer', (t) => {
  const shape = fc.constantFrom<readonly [number, number]>([10, 2], [30, 4], [30, 9], [60, 8], [100, 0], WHOLE);
  const step = fc.record({ shape, suspendable: fc.constantFrom(true, true, false), removed: fc.option(fc.nat(20)) });
  let most = 0;
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 10, maxLength: 30 }),
      fc.constantFrom(1, 2, 3, 4),
      fc.constantFrom(1, 2),
      (steps, factor, gpus) => {
        const of = offering(gpus, factor);
        const pods = new Map<string, boolean>();
        for (const [at, { shape: asked, suspendable, removed }] of steps.entries()) {
          const gone = removed === null ? undefined : [...pods.keys()][removed % Math.max(1, pods.size)];
          if (gone !== undefined) {
            of.removePod(gone);
            pods.delete(gone);
          }
          if (bind(of, `p${at}`, asking(asked, suspendable))) pods.set(`p${at}`, suspendable);
          for (let position = 0; position < gpus; position += 1) {
            const held = [...pods].flatMap(([uid, isSuspendable]) =>
              (of.placedPods.get(uid)?.charges ?? [])
                .filter((charge) => charge.position === position)
                .map((charge) => ({ ...charge, isSuspendable })),
            );
            for (const [amount, real] of [
              ['cores', CORES_PER_GPU],
              ['memoryBytes', BLOCKS * BLOCK],
            ] as const) {
              const sum = (list: typeof held) => list.reduce((all, charge) => all + charge[amount], 0);
              const running = sum(held.filter(({ isSuspendable }) => !isSuspendable));
              const largest = Math.max(0, ...held.filter((one) => one.isSuspendable).map((one) => one[amount]));
              if (running + largest > real || sum(held) > factor * real)
                throw new Error(`${running} and ${largest} of ${sum(held)} ${amount} on GPU ${position}`);
              if (amount === 'cores') most = Math.max(most, sum(held));
            }
          }
        }
      },
    ),
    { numRuns: cases(60, 2_000) },
  );
  t.ok(most > 2 * CORES_PER_GPU, `the histories fill GPUs: ${most} cores`);
  t.end();
});
