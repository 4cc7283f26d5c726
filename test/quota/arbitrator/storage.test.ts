import { test } from 'tap';
import {
  arbitrate,
  consumerProblems,
  NO_MEMORY,
  type ConsumerSpec,
  type Quantities,
  type Situation,
} from '../../../src/quota/arbitrator/index.js';

const FAST = 'fast.storageclass.storage.k8s.io/requests.storage';
const of = (amounts: Readonly<Record<string, number>>): Quantities => new Map(Object.entries(amounts));
const by = (amounts: Readonly<Record<string, Readonly<Record<string, number>>>>): ReadonlyMap<string, Quantities> =>
  new Map(Object.entries(amounts).map(([name, each]) => [name, of(each)]));

function situation(
  consumers: readonly ConsumerSpec[],
  used: Parameters<typeof by>[0],
  pending: Parameters<typeof by>[0] = {},
  capacity: Readonly<Record<string, number>> = {},
): Situation {
  return {
    now: 0,
    capacity: of({ cpu: 10 }),
    consumers,
    pods: [],
    pending: new Map(),
    disruptions: new Map(),
    storage: { capacity: of(capacity), used: by(used), pending: by(pending) },
  };
}

const deserved = (given: Situation, lendReserved = false): Readonly<Record<string, Readonly<Record<string, number>>>> =>
  Object.fromEntries(
    arbitrate(given, NO_MEMORY, { lendReserved }).allocations.map(({ name, deserved: share }) => [
      name,
      Object.fromEntries([...share].filter(([resource, amount]) => resource !== 'cpu' && amount > 0)),
    ]),
  );

test('without a capacity each gets the storage that it asks for, up to its limit', (t) => {
  const given = situation([{ name: 'a', hard: of({ storage: 10 }) }, { name: 'b' }], {
    a: { storage: 14, persistentvolumeclaims: 2 },
    b: { storage: 100, [FAST]: 7 },
  });
  t.same(deserved(given), { a: { storage: 10, persistentvolumeclaims: 2 }, b: { storage: 100, [FAST]: 7 } });
  const plan = arbitrate(given);
  t.match(plan.allocations, [
    { name: 'a', overused: ['storage'] },
    { name: 'b', overused: [] },
  ]);
  t.same(plan.evictions, []);
  t.end();
});

test('a capacity is divided by weight, and what is used up of one class stops no other request', (t) => {
  const consumers = [{ name: 'a', weight: 3 }, { name: 'b' }];
  const given = situation(
    consumers,
    { a: { storage: 50, [FAST]: 10 }, b: { storage: 50, [FAST]: 10 } },
    { b: { storage: 30 } },
    { [FAST]: 8 },
  );
  t.same(deserved(given), { a: { storage: 50, [FAST]: 6 }, b: { storage: 80, [FAST]: 2 } });
  t.end();
});

test('reserved storage is kept, or lent where the policy lends it', (t) => {
  const consumers = [{ name: 'a', reserved: of({ storage: 6 }) }, { name: 'b' }];
  const given = situation(consumers, { b: { storage: 10 } }, {}, { storage: 10 });
  t.same(deserved(given), { a: { storage: 6 }, b: { storage: 4 } });
  t.same(deserved(given, true), { a: {}, b: { storage: 10 } });
  t.end();
});

test('areas share storage as they share the rest, and no pod is evicted for storage', (t) => {
  const consumers = [
    { name: 'area', hard: of({ storage: 10 }) },
    { name: 'a', parent: 'area' },
    { name: 'b', parent: 'area' },
  ];
  const given: Situation = {
    ...situation(consumers, { a: { storage: 30 } }, { b: { storage: 30 } }),
    pods: [{ id: 'p', consumer: 'a', uses: of({ cpu: 10 }), priority: 0, startedAt: 1 }],
  };
  const plan = arbitrate(given, NO_MEMORY, { graceMs: 0 });
  t.match(Object.fromEntries(plan.allocations.map(({ name, deserved: share }) => [name, share.get('storage') ?? 0])), {
    a: 5,
    b: 5,
  });
  t.same(plan.evictions, []);
  t.end();
});

test('storage may be reserved without a capacity, and not beyond one', (t) => {
  const spec = { name: 'a', reserved: of({ storage: 5 }) };
  t.same(consumerProblems(spec, { capacity: of({ cpu: 1 }), others: [] }), []);
  t.match(consumerProblems(spec, { capacity: of({ storage: 4 }), others: [] }), [{ code: 'ReservedAboveCluster' }]);
  t.end();
});
