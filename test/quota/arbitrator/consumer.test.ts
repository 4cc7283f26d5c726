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

test('K1: what is reserved is not more than what it may have', (t) => {
  t.same(codes({ hard: things({ cpu: 2 }), reserved: things({ cpu: 3 }) }), ['ReservedAboveHard']);
  t.same(codes({ hard: things({ cpu: 3 }), reserved: things({ cpu: 3 }) }), []);
  t.same(
    codes({ hard: things({ memory: 3 }), reserved: things({ cpu: 3 }) }),
    [],
    'what is not limited has room for everything',
  );
  t.end();
});

test('K2: what it may have is not more than the quota of its namespace', (t) => {
  t.same(codes({ hard: things({ cpu: 4 }) }, { cpu: 2 }), ['HardAboveQuota']);
  t.same(codes({ hard: things({ cpu: 2 }) }, { cpu: 2 }), []);
  t.same(codes({}, { cpu: 2 }), [], 'the quota holds without being repeated');
  t.end();
});

test('K3: what is reserved for all is not more than there is', (t) => {
  t.same(codes({ reserved: things({ cpu: 5 }) }), ['ReservedAboveCluster']);
  t.same(codes({ reserved: things({ cpu: 4 }) }), []);
  t.same(codes({ reserved: things({ gpu: 1 }) }), ['ReservedAboveCluster']);
  t.same(codes({ reserved: things({ gpu: 0 }) }), []);
  t.end();
});

test('amounts and weights are what can be divided', (t) => {
  t.same(codes({ hard: new Map([['cpu', -1]]) }), ['InvalidQuantity']);
  t.same(codes({ reserved: new Map([['cpu', 0.5]]) }), ['InvalidQuantity']);
  for (const weight of [0, -1, NaN, Infinity]) t.same(codes({ weight }), ['InvalidWeight']);
  t.end();
});
