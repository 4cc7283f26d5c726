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

/** A cluster of four cores over several periods. */
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

test('an overused consumer gets a notice and a grace period', (t) => {
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

test('a consumer that deletes a pod in time loses no other pod', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.pods = FULL.slice(0, 3);
  t.same(cluster.victims(20), []);
  t.equal(reclaimAt(cluster.at(40), 'a'), null, 'the notice has ended');
  cluster.pods = FULL;
  t.same(cluster.victims(50), [], 'a new notice has a new grace period');
  t.same(cluster.victims(80), ['a4']);
  t.end();
});

test('no consumer gets a notice while no pod waits', (t) => {
  const cluster = new Cluster();
  cluster.pending = new Map();
  t.equal(reclaimAt(cluster.at(0), 'a'), null);
  t.end();
});

test('after an eviction a cooldown applies between the same two consumers', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  t.same(cluster.victims(30), ['a4']);
  t.same(cluster.victims(31), [], 'even if the evicted pod is still there');
  t.same(cluster.victims(89), []);
  t.same(cluster.victims(90), ['a4']);
  t.end();
});

test('the cooldown does not affect another waiting consumer', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.victims(30);
  cluster.pods = [...FULL.slice(0, 3), pod('b', 1, { cpu: 1 })];
  cluster.pending = new Map([['c', things({ cpu: 1 })]]);
  t.same(cluster.at(31).evictions, [{ pod: 'a3', consumer: 'a', resource: 'cpu', beneficiaries: ['c'] }]);
  t.end();
});

test('a clock that goes back does not date a notice into the future', (t) => {
  const cluster = new Cluster();
  cluster.at(1000);
  t.equal(reclaimAt(cluster.at(10), 'a'), 40 * SECOND);
  t.end();
});

test('lost memory costs one more grace period and nothing else', (t) => {
  const cluster = new Cluster();
  cluster.at(0);
  cluster.memory = NO_MEMORY;
  t.same(cluster.victims(30), []);
  t.same(cluster.victims(60), ['a4']);
  t.end();
});
