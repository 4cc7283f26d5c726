import { test } from 'tap';
import { consumerProblems, type ConsumerSpec } from '../../../src/quota/arbitrator/index.js';
import { things } from './quantities.js';

function codes(spec: Omit<ConsumerSpec, 'name'>, quotaHard?: Readonly<Record<string, number>>): readonly string[] {
  const others = [{ name: 'other', reserved: things({ cpu: 6 }) }];
  return consumerProblems(
    { name: 'a', ...spec },
    { capacity: things({ cpu: 10 }), others, quotaHard: quotaHard && things(quotaHard) },
  ).map(({ code }) => code);
}

test('K1: a reservation must not exceed hard', (t) => {
  t.same(codes({ hard: things({ cpu: 2 }), reserved: things({ cpu: 3 }) }), ['ReservedAboveHard']);
  t.same(codes({ hard: things({ cpu: 3 }), reserved: things({ cpu: 3 }) }), []);
  t.same(
    codes({ hard: things({ memory: 3 }), reserved: things({ cpu: 3 }) }),
    [],
    'a resource without a limit allows any reservation',
  );
  t.end();
});

test('K2: hard must not exceed the ResourceQuota of the namespace', (t) => {
  t.same(codes({ hard: things({ cpu: 4 }) }, { cpu: 2 }), ['HardAboveQuota']);
  t.same(codes({ hard: things({ cpu: 2 }) }, { cpu: 2 }), []);
  t.same(codes({}, { cpu: 2 }), [], 'the quota applies without being repeated');
  t.end();
});

test('K3: all reservations together must not exceed the cluster', (t) => {
  t.same(codes({ reserved: things({ cpu: 5 }) }), ['ReservedAboveCluster']);
  t.same(codes({ reserved: things({ cpu: 4 }) }), []);
  t.same(codes({ reserved: things({ gpu: 1 }) }), ['ReservedAboveCluster']);
  t.same(codes({ reserved: things({ gpu: 0 }) }), []);
  t.end();
});

test('amounts are whole numbers and weights are above zero', (t) => {
  t.same(codes({ hard: new Map([['cpu', -1]]) }), ['InvalidQuantity']);
  t.same(codes({ reserved: new Map([['cpu', 0.5]]) }), ['InvalidQuantity']);
  for (const weight of [0, -1, NaN, Infinity]) t.same(codes({ weight }), ['InvalidWeight']);
  t.end();
});
