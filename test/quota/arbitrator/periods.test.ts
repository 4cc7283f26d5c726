import { test } from 'tap';
import {
  arbitrate,
  NO_MEMORY,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type RunningPod,
  type Situation,
} from '../../../src/quota/arbitrator/index.js';
import { inThings, pod, things } from './quantities.js';

const SECOND = 1000;
const POLICY = { graceMs: 30 * SECOND, cooldownMs: 60 * SECOND };
const FULL = [1, 2, 3, 4].map((number) => pod('a', number, { cpu: 1 }));

/** A cluster of four cores, period after period. */
class Cluster {
  pods: readonly RunningPod[] = FULL;
  pending = new Map([['b', things({ cpu: 1 })]]);
  memory: ArbitratorMemory = NO_MEMORY;

  at(seconds: number): ArbitrationPlan {
    const situation: Situation = {
      now: seconds * SECOND,
      capacity: things({ cpu: 4 }),
      consumers: [],
      pods: this.pods,
      pending: this.pending,
      disruptions: new Map(),
    };
    const plan = arbitrate(situation, this.memory, POLICY);
    this.memory = plan.memory;
    return plan;
  }

  victims(seconds: number): readonly string[] {
    return this.at(seconds).evictions.map(({ pod: id }) => id);
  }
}

const reclaimAt = ({ allocations }: ArbitrationPlan, name: string): number | null | undefined =>
  allocations.find((each) => each.name === name)?.reclaimAt;

test('who has too much is told, and has its grace to act', (t) => {
  const cluster = new Cluster();
  const first = cluster.at(0);
  t.same(first.evictions, []);
  t.equal(reclaimAt(first, 'a'), 30 * SECOND);
  t.equal(reclaimAt(first, 'b'), null);
  t.same(
    first.allocations.map(({ name, deserved, dominantShare }) => [name, inThings(deserved), dominantShare]),
    [
      ['a', { cpu: 3 }, 1],
      ['b', { cpu: 1 }, 0],
    ],
  );
  t.same(cluster.victims(29), []);
  t.same(cluster.victims(30), ['a4']);
  t.end();
});

test('who lets a pod go in time loses no other', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.pods = FULL.slice(0, 3);
  t.same(cluster.victims(20), []);
  t.equal(reclaimAt(cluster.at(40), 'a'), null, 'the notice is gone');
  cluster.pods = FULL;
  t.same(cluster.victims(50), [], 'and a new one starts anew');
  t.same(cluster.victims(80), ['a4']);
  t.end();
});

test('nobody is told while nobody waits', (t) => {
  const cluster = new Cluster();
  cluster.pending = new Map();
  t.equal(reclaimAt(cluster.at(0), 'a'), null);
  t.end();
});

test('after an eviction the same two have peace for a while', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  t.same(cluster.victims(30), ['a4']);
  t.same(cluster.victims(31), [], 'even though the pod that was to go is still there');
  t.same(cluster.victims(89), []);
  t.same(cluster.victims(90), ['a4']);
  t.end();
});

test('but another one that waits is served', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.victims(30);
  cluster.pods = [...FULL.slice(0, 3), pod('b', 1, { cpu: 1 })];
  cluster.pending = new Map([['c', things({ cpu: 1 })]]);
  t.same(cluster.at(31).evictions, [{ pod: 'a3', consumer: 'a', resource: 'cpu', beneficiaries: ['c'] }]);
  t.end();
});

test('a clock that goes back gives no notice in the future', (t) => {
  const cluster = new Cluster();
  cluster.at(1000);
  t.equal(reclaimAt(cluster.at(10), 'a'), 40 * SECOND);
  t.end();
});

test('a memory that is lost costs a grace, no more', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.memory = NO_MEMORY;
  t.same(cluster.victims(30), []);
  t.same(cluster.victims(60), ['a4']);
  t.end();
});
