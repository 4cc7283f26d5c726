import { test } from 'tap';
import {
  arbitrate,
  NO_MEMORY,
  type ArbitrationPlan,
  type ConsumerSpec,
  type RunningPod,
} from '../../../src/quota/arbitrator/index.js';
import { inThings, pod, things } from './quantities.js';

type Amounts = Readonly<Record<string, number>>;

interface Scene {
  readonly cluster: Amounts;
  readonly pods: readonly RunningPod[];
  readonly pending?: Readonly<Record<string, Amounts>>;
  readonly consumers?: readonly ConsumerSpec[];
  readonly disruptions?: Readonly<Record<string, number>>;
}

/** One period without grace and cooldown. */
function plan({ cluster, pods, pending = {}, consumers = [], disruptions = {} }: Scene): ArbitrationPlan {
  const situation = {
    now: 0,
    capacity: things(cluster),
    pods,
    consumers,
    pending: new Map(Object.entries(pending).map(([name, amounts]) => [name, things(amounts)])),
    disruptions: new Map(Object.entries(disruptions)),
  };
  return arbitrate(situation, NO_MEMORY, { graceMs: 0, cooldownMs: 0 });
}

const victims = (scene: Scene): readonly string[] => plan(scene).evictions.map(({ pod: id }) => id);
const many = (consumer: string, count: number, uses: Amounts = { cpu: 1 }): RunningPod[] =>
  Array.from({ length: count }, (_, at) => pod(consumer, at + 1, uses));

test('E01: the youngest pod of an overused consumer is evicted until both have their fair shares', (t) => {
  const pods = many('p', 2, { cpu: 1, memory: 1 });
  const scene = { cluster: { cpu: 2, memory: 2 }, pods, pending: { c: { cpu: 1, memory: 1 } } };
  const before = plan(scene);
  t.same(before.evictions, [{ pod: 'p2', consumer: 'p', resource: 'cpu', beneficiaries: ['c'] }]);
  t.same(
    before.allocations.map(({ name, overused }) => [name, overused]),
    [
      ['c', []],
      ['p', ['cpu', 'memory']],
    ],
  );
  const after = plan({ ...scene, pods: [pods[0] as RunningPod, pod('c', 1, { cpu: 1, memory: 1 })], pending: {} });
  t.same(after.evictions, []);
  t.same(
    after.allocations.map(({ name, used }) => [name, inThings(used)]),
    [
      ['c', { cpu: 1, memory: 1 }],
      ['p', { cpu: 1, memory: 1 }],
    ],
  );
  t.end();
});

test('E02: an overused consumer keeps its pods while no other consumer needs the resources', (t) => {
  const { evictions, allocations } = plan({
    cluster: { cpu: 4 },
    pods: many('a', 4),
    consumers: [{ name: 'a', hard: things({ cpu: 2 }) }, { name: 'b' }],
  });
  t.same(evictions, []);
  t.same(allocations.find(({ name }) => name === 'a')?.overused, ['cpu']);
  t.end();
});

test('E03: nothing is evicted for resources that are free', (t) => {
  t.same(victims({ cluster: { cpu: 10 }, pods: many('a', 8), pending: { b: { cpu: 2 } } }), []);
  t.same(victims({ cluster: { cpu: 10 }, pods: many('a', 10), pending: { b: { cpu: 2 } } }), ['a10', 'a9']);
  t.end();
});

test('E03: nothing is evicted for resources that leaving pods free', (t) => {
  const pods = [
    ...many('a', 8),
    pod('a', 9, { cpu: 1 }, { isLeaving: true }),
    pod('a', 10, { cpu: 1 }, { isLeaving: true }),
  ];
  t.same(victims({ cluster: { cpu: 10 }, pods, pending: { b: { cpu: 2 } } }), []);
  t.end();
});

test('E04: a pod whose disruption budget allows no eviction is passed over for the next one', (t) => {
  const guarded = [
    pod('a', 1, { cpu: 1 }),
    pod('a', 2, { cpu: 1 }),
    pod('a', 3, { cpu: 1 }, { budgets: ['web'] }),
    pod('a', 4, { cpu: 1 }, { budgets: ['web', 'all'] }),
  ];
  const scene = { cluster: { cpu: 4 }, pods: guarded, pending: { b: { cpu: 2 } } };
  t.same(victims({ ...scene, disruptions: { web: 0, all: 5 } }), ['a2', 'a1']);
  t.same(
    victims({ ...scene, disruptions: { web: 1, all: 5 } }),
    ['a4', 'a2'],
    'each eviction counts against the budget',
  );
  t.same(victims({ ...scene, disruptions: {} }), ['a2', 'a1'], 'an unknown budget allows no eviction');
  t.end();
});

test('E05: no consumer falls below its reservation', (t) => {
  const pods = [pod('a', 1, { cpu: 1 }), pod('a', 2, { cpu: 3 })];
  t.same(
    victims({
      cluster: { cpu: 4 },
      pods,
      pending: { b: { cpu: 2 } },
      consumers: [{ name: 'a', reserved: things({ cpu: 2 }) }],
    }),
    ['a1'],
  );
  t.end();
});

test('E06, E07: every victim comes from the consumer that is most overused at that moment', (t) => {
  // The fair share of both is 3 of 12; a uses 4, b uses 6.
  const consumers = ['a', 'b'].map((name) => ({ name, hard: things({ cpu: 3 }) }));
  const scene = { cluster: { cpu: 10 }, pods: [...many('a', 4), ...many('b', 6)], consumers };
  t.same(victims({ ...scene, pending: { c: { cpu: 2 } } }), ['b6', 'b5']);
  t.same(victims({ ...scene, pending: { c: { cpu: 4 } } }), ['b6', 'b5', 'a4', 'b4']);
  t.end();
});

test('E08: priority decides before age', (t) => {
  const pods = [pod('a', 1, { cpu: 1 }, { priority: 1 }), pod('a', 2, { cpu: 1 }, { priority: 9 })];
  t.same(victims({ cluster: { cpu: 2 }, pods, pending: { b: { cpu: 1 } } }), ['a1']);
  t.end();
});

test('E09: pods without the missing resource stay', (t) => {
  const pods = [pod('a', 1, { cpu: 1, gpu: 1 }), pod('a', 2, { gpu: 1 }), pod('a', 3, { cpu: 1 })];
  t.same(victims({ cluster: { cpu: 100, gpu: 2 }, pods, pending: { b: { gpu: 1 } } }), ['a2']);
  t.end();
});

test('protected pods stay, and the next plan replaces a pod that the API refused to evict', (t) => {
  const scene = { cluster: { cpu: 3 }, pods: many('a', 3), pending: { b: { cpu: 1 } } };
  t.same(victims(scene), ['a3']);
  t.same(
    victims({ ...scene, pods: scene.pods.map((each) => (each.id === 'a3' ? { ...each, isProtected: true } : each)) }),
    ['a2'],
  );
  t.end();
});

test('victims that turn out to be unneeded stay', (t) => {
  // The last two pods do not suffice; the first one suffices alone.
  const pods = [pod('a', 1, { cpu: 4 }), pod('a', 2, { cpu: 1 }), pod('a', 3, { cpu: 1 })];
  t.same(victims({ cluster: { cpu: 6 }, pods, pending: { b: { cpu: 3 } } }), ['a1']);
  t.end();
});

test('pods of unknown age are evicted first, in a stable order', (t) => {
  const pods = [
    pod('a', 1, { cpu: 1 }),
    ...[2, 3, 4].map((number) => pod('a', number, { cpu: 1 }, { startedAt: null })),
  ];
  const chosen = victims({ cluster: { cpu: 4 }, pods, pending: { b: { cpu: 2 } } });
  t.equal(chosen.length, 2);
  t.notOk(chosen.includes('a1'));
  t.same(victims({ cluster: { cpu: 4 }, pods: [...pods].reverse(), pending: { b: { cpu: 2 } } }), chosen);
  t.end();
});
